import { hashedId } from "../core/hashed-id.ts";
import { kindOf, readKey } from "../core/keys.ts";
import type { Provenance } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { SessionRef } from "../core/session-ref.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type {
  Accepted,
  AcceptRequest,
  DeliveryTarget,
  InputKind,
  OutboxRow,
  RootRef,
  Run,
  RunOptions,
  RunStore,
} from "../runs/contract.ts";
import type { Scope, SessionRecord, Store } from "../store/contract.ts";

/** A message from one session to another. */
interface SessionDelivery {
  /** Derived from the cause of the delivery so that a repeated delivery changes nothing. See {@link deliveryId}. */
  readonly id: string;
  readonly from: SessionRef;
  /** The run that sends the message. `null` if a program sent it, or if it was sent because a run ended. */
  readonly runId: string | null;
  /** The target's key, which might belong to a different session by the time of delivery. */
  readonly to: string;
  readonly kind: Extract<InputKind, "send" | "ping_pong" | "announce" | "note">;
  readonly text: string;
  readonly root: RootRef;
  /** The session tool that sent the message. */
  readonly tool?: string;
  /** The sender's channel. */
  readonly channel?: string;
  /** The run whose end is announced. */
  readonly arrivalOf?: string;
  /** `true` if neither session spawned the other. Such messages count toward the limit that prevents loops. */
  readonly isBetweenStrangers?: boolean;
  readonly options?: RunOptions;
}

/**
 * Delivers a dead letter to the session that currently holds the key. If no session holds the key of a sub-agent,
 * delivers the letter to the sub-agent's parent. Repeated calls deliver the letter only once. Returns `null` if neither
 * session exists.
 */
export async function redeliver(
  {
    store,
    runs,
  }: { readonly store: Pick<Store, "sessions">; readonly runs: Pick<RunStore, "accept" | "get"> },
  { outboxId: id, session: from, runId, target: { to = "" }, text }: OutboxRow,
): Promise<Accepted | null> {
  const sending = runId === null ? null : await runs.get(runId);
  const root = sending === null ? { rootId: id, hops: 0 } : { ...sending.root, hops: sending.root.hops + 1 };
  const delivery: SessionDelivery = { id, from, runId, to, kind: "send", text, root };
  const target = await targetOf(store, delivery);
  return target === null ? null : runs.accept(acceptRequest(delivery, target));
}

/** Returns a delivery's run ID. */
export function deliveryRunId(userId: string | null, id: string): string {
  return hashedId("delivery", userId ?? "", id);
}

/** A delivery whose target is known. `from` is `null` if the sender is not a session. */
type KnownDelivery = Omit<SessionDelivery, "from" | "to"> & { readonly from: SessionRef | null };

/** Converts the delivery to input for its target, to be accepted within a larger transaction. */
export function acceptRequest(delivery: KnownDelivery, target: SessionRecord): AcceptRequest {
  const { id, from, kind, text, root, tool, channel, arrivalOf, isBetweenStrangers, options, runId } =
    delivery;
  const provenance = {
    kind: from === null ? "external_user" : "inter_session",
    ...present({ sourceSessionKey: from?.key, sourceChannel: channel, sourceTool: tool }),
    rootId: root.rootId,
    hops: root.hops,
    deliveryId: id,
  };
  const pair = isBetweenStrangers === true && from !== null ? ([from.uid, target.uid] as const) : undefined;
  return {
    session: sessionRefOf(target),
    kind,
    message: kind === "note" ? noteOf(text, provenance) : { role: "user", content: text, provenance },
    idempotencyKey: `delivery:${id}`,
    entryId: id,
    queueMode: "followup",
    provenance,
    root,
    isDelivery: kind === "announce" || kind === "note",
    ...present({ pair, arrivalOf, options, startedBy: runId }),
  };
}

/** Returns a message in the agent's name that also records the actual author. */
export function noteOf(text: string, provenance: Provenance): AcceptRequest["message"] {
  return {
    role: "assistant",
    content: [{ type: "text", text }],
    api: "skein",
    provider: "skein",
    model: "note",
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { total: 0 } },
    stopReason: "stop",
    provenance,
  };
}

/**
 * Returns the session that currently holds the key. If no session holds the key of a sub-agent, returns the sub-agent's
 * parent.
 */
async function targetOf(
  { sessions }: Pick<Store, "sessions">,
  { to, from }: SessionDelivery,
): Promise<SessionRecord | null> {
  const scope: Scope = present({ userId: from.userId });
  const [here] = await sessions.find(scope, { by: "key", key: to });
  if (here !== undefined) return here;
  const key = readKey(to);
  if ("problem" in key || key.form !== "subagent") return null;
  return sessions.get(scope, key.parentSessionId);
}

type SessionChannel = Pick<SessionRecord, "key" | "meta">;

/**
 * Returns the channel through which users read this session: the recorded delivery context, otherwise the channel named
 * in its key, with account and thread. Returns `null` if there is none.
 */
export function outsideChannel({ key, meta }: SessionChannel): DeliveryTarget | null {
  const parsed = readKey(key);
  if ("problem" in parsed || ["cron", "hook", "node"].includes(kindOf(parsed))) return null;
  const fromKey = keyTarget(parsed);
  const { delivery } = meta;
  if (delivery === undefined) return fromKey;
  if (delivery.channel === "internal") return null;
  const threadId = delivery.threadId ?? fromKey?.threadId;
  return { ...delivery, ...present({ threadId }) };
}

/**
 * Returns where a session delivers its answer to a child's result or to a reply. This is the delivery target of the run
 * that spawned the child or sent the message. Outside a run, it is the session's delivery context, except that a
 * spawned session reports only to its parent.
 */
export function answerTarget(by: {
  readonly run: Pick<Run, "options"> | null;
  readonly session: SessionChannel;
}): DeliveryTarget | undefined {
  if (by.run !== null) return by.run.options.deliverTo;
  const { spawnedBy, delivery } = by.session.meta;
  return spawnedBy === undefined ? delivery : undefined;
}

/** Returns the channel that a session is on, or `null` if there is none. */
export function channelOf(session: SessionChannel): string | null {
  const channel = session.meta.channel ?? outsideChannel(session)?.channel;
  return channel === undefined || channel === "internal" ? null : channel;
}

function keyTarget(key: Exclude<ReturnType<typeof readKey>, { problem: string }>): DeliveryTarget | null {
  if (key.form === "group") {
    return { channel: key.channel, to: key.groupId, ...present({ threadId: key.thread }) };
  }
  if (key.form !== "direct" || key.channel === undefined || key.channel === "internal") return null;
  const { channel, peer: to, account: accountId, thread: threadId } = key;
  return { channel, to, ...present({ accountId, threadId }) };
}
