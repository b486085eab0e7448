import { createTreeCheck, refuseFailedLookup } from "../access/visibility/decide-access.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { keyOfReference } from "../core/references.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import { cutText, longestQuote } from "../core/text.ts";
import type {
  Accepted,
  AcceptRequest,
  Party,
  ReplySequel,
  RequestDigests,
  RootRef,
  Run,
  RunOptions,
} from "../runs/contract.ts";
import { digestRequest, findConflict } from "../runs/same-request.ts";
import { messageContext } from "../runs/sequel-prompts.ts";
import type { SessionRecord } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import { checkTextSize, modelWindow } from "./accept.ts";
import type { App } from "./app.ts";
import { withBlobs } from "./append.ts";
import { acceptRequest, answerTarget, channelOf, deliveryRunId, outsideChannel } from "./delivery.ts";
import { awaitReply } from "./reply-wait.ts";
import type { SendRefusal, SendRequest, SendResult } from "./send-target.ts";
import { pendingDelivery, refusalOf, sendTarget, unfit } from "./send-target.ts";
import type { Caller } from "./session-access.ts";

/** Below the maximum delay of the platform's timers. */
const longestWaitSeconds = 2_000_000;

/**
 * Sends a message to another session. The message is durable when this resolves. A retry returns the first call's
 * result.
 */
export async function sendToSession(app: App, caller: Caller, request: SendRequest): Promise<SendResult> {
  const runId = deliveryRunId(caller.userId, caller.callId);
  const refused = (refusal: SendRefusal): SendResult => ({ runId, ...refusal });
  const known = await app.runs.get(runId, caller.userId);
  if (known !== null) {
    if (!isOurs(known, caller)) return refused(taken);
    const isNote = request.role === "assistant";
    const repeated = { content: request.message, isNote, digests: sendDigests(app, caller, request) };
    const conflict = findConflict(known, repeated);
    if (conflict === null) return resultOf(app, caller, known, request);
    return refused({ status: "error", code: conflict.code, error: conflict.message });
  }
  if (request.message.trim() === "") return refused(unfit("The message is empty. Send some text."));
  const target = await sendTarget(app, caller, request);
  if ("refusal" in target) return refused(target.refusal);
  const accepted = await accept(app, caller, target.session, request);
  if ("status" in accepted) return refused(accepted);
  return isOurs(accepted.run, caller) ? resultOf(app, caller, accepted.run, request) : refused(taken);
}

const taken: SendRefusal = {
  status: "error",
  code: "conflict",
  error: "This idempotency key was already used by another session. Use a different key.",
};

/**
 * Whether this caller sent the message that started the run. A caller outside a run might reuse another caller's
 * idempotency key and must not receive that caller's reply.
 */
function isOurs({ provenance }: Run, { session, callId }: Caller): boolean {
  return provenance?.deliveryId === callId && provenance.sourceSessionKey === session?.key;
}

export async function accept(
  app: App,
  caller: Caller,
  target: SessionRecord,
  request: SendRequest,
): Promise<Accepted | (SendRefusal & Pick<SendResult, "budget">)> {
  const sessionKey = app.access.display(caller, target.key);
  const seconds = Math.min(request.timeoutSeconds ?? 0, longestWaitSeconds);
  const until = seconds > 0 ? app.clock.now() + seconds * 1000 : null;
  let isKin: boolean;
  try {
    isKin = caller.session === null || (await isRelated(app, caller.session, target));
  } catch (error) {
    return { ...refusalOf(refuseFailedLookup(error)), sessionKey };
  }
  try {
    const { agentId, key, meta } = target;
    await checkTextSize(request.message, () => modelWindow(app, agentId, key, meta.model));
    return await app.runs.accept(await sendInput(app, caller, target, request, { until, isKin }));
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    const budget = error.code === "budget_exceeded" ? error.details : undefined;
    return { status: "error", code: error.code, error: error.message, sessionKey, ...present({ budget }) };
  }
}

async function resultOf(
  app: App,
  caller: Caller,
  { runId, kind, session }: Run,
  { timeoutSeconds = 0 }: SendRequest,
): Promise<SendResult> {
  const sent = { runId, status: "sent", sessionKey: app.access.display(caller, session.key) } as const;
  if (kind === "note") return sent;
  // A caller without a session cannot receive messages.
  const delivery = caller.session === null ? undefined : pendingDelivery;
  const pending: SendResult = { ...sent, ...present({ delivery }) };
  if (!(timeoutSeconds > 0)) return pending;
  const awaited = await awaitReply(app, caller, runId);
  const later =
    delivery === undefined ? "its reply can be read there later" : "its reply arrives as a separate message";
  switch (awaited.how) {
    case "ended":
      return endedResult(sent, awaited.run);
    case "late": {
      const waitsForApp = (await app.runs.waits(runId))?.app;
      return {
        ...pending,
        ...present({ waitsForApp }),
        status: "timeout",
        note: `No reply within ${timeoutSeconds} seconds. The session is still working, and ${later}. Do not send the message again.`,
      };
    }
    case "circle":
      return {
        ...pending,
        code: "wait_cycle",
        note: `This call does not wait, because that session is already waiting for this one, directly or through others. The message was delivered, and ${later}.`,
      };
    case "unawaited":
      return pending;
  }
}

type Sent = Pick<SendResult, "runId" | "sessionKey">;

function endedResult({ runId, sessionKey }: Sent, { outcome }: Run): SendResult {
  const named = { runId, ...present({ sessionKey }) };
  const { state = "error", code, error, reply = "" } = outcome ?? {};
  if (state === "ok") return { ...named, status: "ok", reply };
  const status = state === "aborted" ? "aborted" : "error";
  return {
    ...named,
    status,
    code: code ?? state,
    error: error ?? `The turn in that session ended in state ${state}.`,
    ...present({ reply: reply.trim() === "" ? null : reply }),
  };
}

/** Converts the message to input for its target, including the sequel that starts when the resulting run ends. */
async function sendInput(
  app: Pick<App, "store" | "config" | "owner">,
  caller: Caller,
  target: SessionRecord,
  request: SendRequest,
  { until, isKin }: { readonly until: number | null; readonly isKin: boolean },
): Promise<AcceptRequest> {
  const isNote = request.role === "assistant";
  const asker = caller.session;
  const options: RunOptions = {
    ...(isNote ? {} : sendOptions(app, caller, target, request, isKin)),
    requestDigests: sendDigests(app, caller, request),
    ...present({ callEntryId: caller.entryId }),
  };
  const input = acceptRequest(
    {
      id: caller.callId,
      from: asker === null ? null : sessionRefOf(asker),
      // A note starts no turn, so there is no reply to wait for.
      runId: isNote ? null : (caller.run?.runId ?? null),
      kind: isNote ? "note" : "send",
      text: request.message,
      root: rootOf(caller),
      tool: "sessions_send",
      isBetweenStrangers: !isNote && !isKin,
      options,
      ...present({ channel: asker === null ? null : channelOf(asker) }),
    },
    target,
  );
  const awaitedBy = until === null || isNote ? undefined : { by: waiterOf(app, caller), until };
  const message = await withBlobs(app.store, scopeOfSession(target), input.message);
  return { ...input, message, runId: deliveryRunId(caller.userId, caller.callId), ...present({ awaitedBy }) };
}

/** Computes a send's digests, which are equal for identical sends. Different forms of one key count as the same key. */
function sendDigests(
  { config }: Pick<App, "config">,
  { agentId }: Pick<Caller, "agentId">,
  { sessionKey, role = "user", timeoutSeconds = 0, ...rest }: SendRequest,
): RequestDigests {
  const key =
    sessionKey === undefined
      ? undefined
      : (keyOfReference(sessionKey, { agentId, scope: config.session.scope }) ?? sessionKey);
  return digestRequest({ ...rest, sessionKey: key, role, timeoutSeconds });
}

function sendOptions(
  { config }: Pick<App, "config">,
  caller: Caller,
  target: SessionRecord,
  { message }: SendRequest,
  isKin: boolean,
): RunOptions {
  const origin = "inter_session";
  // Without a sending session, nothing can receive a reply.
  if (caller.session === null) return { origin };
  const sequel: ReplySequel = {
    type: "reply",
    asker: partyOf(caller.session),
    target: partyOf(target),
    request: cutText(message, longestQuote),
    turns: isKin ? 0 : config.session.agentToAgent.maxPingPongTurns,
    ...present({
      // No announcements are made between a parent and its child.
      announceTo: isKin || hasOnlyItsParents(target) ? null : outsideChannel(target),
      deliverTo: answerTarget({ run: caller.run, session: caller.session }),
    }),
  };
  return { origin, extraSystemPrompt: messageContext(sequel.asker, sequel.target), sequel };
}

function rootOf({ run, callId }: Caller): RootRef {
  if (run === null) return { rootId: callId, hops: 0 };
  return { rootId: run.root.rootId, hops: run.root.hops + 1 };
}

/**
 * Whether a session was spawned without a separate thread. Such a session shares its parent's channel but reports only
 * to its parent.
 */
function hasOnlyItsParents({ meta }: SessionRecord): boolean {
  return meta.spawnedBy !== undefined && meta.ownThread !== true;
}

function waiterOf({ owner }: Pick<App, "owner">, { run }: Caller) {
  return run === null ? { owner } : { runId: run.runId };
}

function partyOf(session: SessionRecord): Party {
  const { key, sessionId } = session;
  return { key, sessionId, ...present({ channel: channelOf(session) }) };
}

/** Whether one of the sessions spawned the other, at any depth. */
async function isRelated(
  { store }: Pick<App, "store">,
  one: SessionRecord,
  other: SessionRecord,
): Promise<boolean> {
  const scope = present({ userId: one.userId });
  const isIn = createTreeCheck(async (key) => {
    const [session] = await store.sessions.find(scope, { by: "key", key });
    return session?.meta.spawnedBy ?? null;
  });
  const asTarget = ({ userId, agentId, key, meta }: SessionRecord) => ({
    userId,
    agentId,
    key,
    spawnedBy: meta.spawnedBy ?? null,
  });
  return (await isIn(one.key, asTarget(other))) || (await isIn(other.key, asTarget(one)));
}
