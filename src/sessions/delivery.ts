import { hashedId } from "../core/hashed-id.ts";
import { readKey } from "../core/keys.ts";
import type { Provenance } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { SessionRef } from "../core/session-ref.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type {
  Accepted,
  AcceptRequest,
  InputKind,
  OutboxRow,
  RootRef,
  RunOptions,
  RunStore,
} from "../runs/contract.ts";
import type { Scope, SessionRecord, Store } from "../store/contract.ts";

/** A message from one session to another. */
export interface SessionDelivery {
  /** Fixed by what set it off, so that a second time changes nothing: {@link deliveryId}. */
  readonly id: string;
  readonly from: SessionRef;
  /** The run that sends it; `null`: the end of a run, or a program. */
  readonly runId: string | null;
  /** The key of the target, which may have moved on to another session since. */
  readonly to: string;
  readonly kind: Extract<InputKind, "send" | "ping_pong" | "announce" | "note">;
  readonly text: string;
  readonly root: RootRef;
  /** The tool that sent it. */
  readonly tool?: string;
  /** The channel that the sender is on. */
  readonly channel?: string;
  /** The run whose end this announces. */
  readonly arrivalOf?: string;
  /** Neither spawned the other: counted against loops. */
  readonly isBetweenStrangers?: boolean;
  readonly options?: RunOptions;
}

/**
 * Delivers a dead letter to the session that has the key now, else to the session that spawned it. The same letter is
 * accepted once. `null`: there is still no such session.
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

/** The run of a delivery, which follows from it. */
export function deliveryRunId(userId: string | null, id: string): string {
  return hashedId("delivery", userId ?? "", id);
}

/** A delivery whose target is known. `from` is `null`: somebody outside of every session says it. */
export type KnownDelivery = Omit<SessionDelivery, "from" | "to"> & { readonly from: SessionRef | null };

/** The delivery as input of its target, for a transaction that has more to do. */
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

/** A message in the agent's place, with who wrote it. */
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

/** The session that has the key now, else the one that spawned it. */
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
