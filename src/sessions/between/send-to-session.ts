import { refuseFailedLookup } from "../../access/visibility/refusal.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Accepted, Run } from "../../runs/contract.ts";
import { findConflict } from "../../runs/same-request.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { checkTextSize } from "../input/accept-input.ts";
import { deliveryRunId } from "../input/session-delivery.ts";
import type { Caller } from "./contract.ts";
import type { SendDeps, SendRefusal, SendRequest, SendResult } from "./send-contract.ts";
import { pendingDelivery, refusalOf, unfit } from "./send-contract.ts";
import { isRelated, sendDigests, sendInput } from "./send-request.ts";
import { sendTarget } from "./send-target.ts";
import { awaitReply } from "./send-wait.ts";

/** As long as a timer of the platform can be. */
const longestWaitSeconds = 2_000_000;

/**
 * Says something in another session. The input is durable when this gives a result; the same call again finds what the first
 * has done, and gives the same.
 */
export async function sendToSession(
  deps: SendDeps,
  caller: Caller,
  request: SendRequest,
): Promise<SendResult> {
  const runId = deliveryRunId(caller.userId, caller.callId);
  const refused = (refusal: SendRefusal): SendResult => ({ runId, ...refusal });
  const known = await deps.runs.get(runId, caller.userId);
  if (known !== null) {
    if (!isOurs(known, caller)) return refused(taken);
    const isNote = request.role === "assistant";
    const repeated = { content: request.message, isNote, digests: sendDigests(deps, caller, request) };
    const conflict = findConflict(known, repeated);
    if (conflict === null) return resultOf(deps, caller, known, request);
    return refused({ status: "error", code: conflict.code, error: conflict.message });
  }
  if (request.message.trim() === "") return refused(unfit("The message is empty. Say something."));
  const target = await sendTarget(deps, caller, request);
  if ("refusal" in target) return refused(target.refusal);
  const accepted = await accept(deps, caller, target.session, request);
  if ("status" in accepted) return refused(accepted);
  return isOurs(accepted.run, caller) ? resultOf(deps, caller, accepted.run, request) : refused(taken);
}

const taken: SendRefusal = {
  status: "error",
  code: "conflict",
  error: "Another session has sent something under this idempotency key. Use another one.",
};

/** An outside caller may name a call as somebody else has: that one's reply is not for them. */
function isOurs({ provenance }: Run, { session, callId }: Caller): boolean {
  return provenance?.deliveryId === callId && provenance.sourceSessionKey === session?.key;
}

async function accept(
  deps: SendDeps,
  caller: Caller,
  target: SessionRecord,
  request: SendRequest,
): Promise<Accepted | (SendRefusal & Pick<SendResult, "budget">)> {
  const sessionKey = deps.access.display(caller, target.key);
  const seconds = Math.min(request.timeoutSeconds ?? 0, longestWaitSeconds);
  const until = seconds > 0 ? deps.clock.now() + seconds * 1000 : null;
  let isKin: boolean;
  try {
    isKin = caller.session === null || (await isRelated(deps, caller.session, target));
  } catch (error) {
    return { ...refusalOf(refuseFailedLookup(error)), sessionKey };
  }
  try {
    const { agentId, key, meta } = target;
    await checkTextSize(request.message, () => deps.modelWindow(agentId, key, meta.model));
    return await deps.runs.accept(await sendInput(deps, caller, target, request, { until, isKin }));
  } catch (error) {
    if (!(error instanceof SkeinError)) throw error;
    const budget = error.code === "budget_exceeded" ? error.details : undefined;
    return { status: "error", code: error.code, error: error.message, sessionKey, ...present({ budget }) };
  }
}

async function resultOf(
  deps: SendDeps,
  caller: Caller,
  { runId, kind, session }: Run,
  { timeoutSeconds = 0 }: SendRequest,
): Promise<SendResult> {
  const sent = { runId, status: "sent", sessionKey: deps.access.display(caller, session.key) } as const;
  if (kind === "note") return sent;
  // Somebody outside of every session can be brought nothing.
  const delivery = caller.session === null ? undefined : pendingDelivery;
  const pending: SendResult = { ...sent, ...present({ delivery }) };
  if (!(timeoutSeconds > 0)) return pending;
  const awaited = await awaitReply(deps, caller, runId);
  const later =
    delivery === undefined
      ? "its reply can be read there later"
      : "its reply comes to you as a message of its own";
  switch (awaited.how) {
    case "ended":
      return endedResult(sent, awaited.run);
    case "late": {
      const app = (await deps.runs.waits(runId))?.app;
      return {
        ...pending,
        ...present({ waitsForApp: app }),
        status: "timeout",
        note: `No reply within ${timeoutSeconds} seconds. The session goes on, and ${later}; do not send again.`,
      };
    }
    case "circle":
      return {
        ...pending,
        code: "wait_cycle",
        note: `Not waited for: that session waits, itself or through others, for this one. The message is delivered, and ${later}.`,
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
    error: error ?? `The turn of that session ended as: ${state}.`,
    ...present({ reply: reply.trim() === "" ? null : reply }),
  };
}
