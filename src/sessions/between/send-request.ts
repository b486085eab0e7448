import { createTreeCheck } from "../../access/visibility/decide-access.ts";
import { present } from "../../core/present.ts";
import { keyMeant } from "../../core/references.ts";
import { sessionRefOf } from "../../core/session-ref.ts";
import { cutText } from "../../core/text.ts";
import type {
  AcceptRequest,
  Party,
  ReplySequel,
  RequestDigests,
  RootRef,
  RunOptions,
} from "../../runs/contract.ts";
import { digestRequest } from "../../runs/same-request.ts";
import { messageContext } from "../../runs/sequels/exchange-prompts.ts";
import { longestQuote } from "../../runs/sequels/untrusted.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { scopeOfSession } from "../../store/rules.ts";
import { withBlobs } from "../guard/guarded-append.ts";
import { acceptRequest, deliveryRunId } from "../input/session-delivery.ts";
import type { Caller } from "./contract.ts";
import { answerTarget, channelOf, outsideChannel } from "./outside-channel.ts";
import type { SendDeps, SendRequest } from "./send-contract.ts";

/** The message as input of its target, with all that its end sets off. */
export async function sendInput(
  deps: Pick<SendDeps, "store" | "settings" | "owner">,
  caller: Caller,
  target: SessionRecord,
  request: SendRequest,
  { until, isKin }: { readonly until: number | null; readonly isKin: boolean },
): Promise<AcceptRequest> {
  const isNote = request.role === "assistant";
  const asker = caller.session;
  const options: RunOptions = {
    ...(isNote ? {} : sendOptions(deps, caller, target, request, isKin)),
    requestDigests: sendDigests(deps, caller, request),
  };
  const input = acceptRequest(
    {
      id: caller.callId,
      from: asker === null ? null : sessionRefOf(asker),
      // A note is nothing that its sender could wait for.
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
  const awaitedBy = until === null || isNote ? undefined : { by: waiterOf(deps, caller), until };
  const message = await withBlobs(deps.store, scopeOfSession(target), input.message);
  return { ...input, message, runId: deliveryRunId(caller.userId, caller.callId), ...present({ awaitedBy }) };
}

/** What makes a send the same one again. A key counts as the same key however it is written. */
export function sendDigests(
  { settings: { scope } }: Pick<SendDeps, "settings">,
  { agentId }: Pick<Caller, "agentId">,
  { sessionKey, role = "user", timeoutSeconds = 0, ...rest }: SendRequest,
): RequestDigests {
  const key = sessionKey === undefined ? undefined : (keyMeant(sessionKey, { agentId, scope }) ?? sessionKey);
  return digestRequest({ ...rest, sessionKey: key, role, timeoutSeconds });
}

function sendOptions(
  { settings }: Pick<SendDeps, "settings">,
  caller: Caller,
  target: SessionRecord,
  { message }: SendRequest,
  isKin: boolean,
): RunOptions {
  const origin = "inter_session";
  // Outside of every session there is nobody whom a reply could be brought to.
  if (caller.session === null) return { origin };
  const sequel: ReplySequel = {
    type: "reply",
    asker: partyOf(caller.session),
    target: partyOf(target),
    request: cutText(message, longestQuote),
    turns: isKin ? 0 : settings.maxPingPongTurns,
    ...present({
      // Between parent and child there is nothing to announce.
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

/** A spawned session without a thread has the channel of its parent, to whom its words go. */
function hasOnlyItsParents({ meta }: SessionRecord): boolean {
  return meta.spawnedBy !== undefined && meta.ownThread !== true;
}

function waiterOf({ owner }: Pick<SendDeps, "owner">, { run }: Caller) {
  return run === null ? { owner } : { runId: run.runId };
}

function partyOf(session: SessionRecord): Party {
  const { key, sessionId } = session;
  return { key, sessionId, ...present({ channel: channelOf(session) }) };
}

/** Whether one spawned the other, at any depth. */
export async function isRelated(
  { store }: Pick<SendDeps, "store">,
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
