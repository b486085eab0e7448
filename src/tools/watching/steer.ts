import { hashedId } from "../../core/hashed-id.ts";
import { isAcpKey } from "../../core/keys.ts";
import type { AcceptRequest, Child } from "../../runs/contract.ts";
import { openStates } from "../../runs/states.ts";
import type { App } from "../../sessions/app.ts";
import type { Caller } from "../../sessions/session-access.ts";
import type { SessionRecord } from "../../store/contract.ts";

export type Steered =
  | { readonly runId: string; readonly mode: "steered" | "queued"; readonly text?: string }
  /** There is nobody to say it to any more. */
  | { readonly gone: true };

/**
 * Says something to a child in the middle of its turn: that turn takes it in at its next step and loses nothing. A child that
 * sleeps, or has not begun, takes it as a turn of its own; an agent over ACP takes nothing in the middle of a turn. Under the
 * caller's root, one hop further.
 */
export async function steerChild(
  { run }: Child,
  text: string,
  call: Caller & { readonly session: SessionRecord },
  app: App,
): Promise<Steered> {
  const session = app.store.work.find(call.userId, { key: run.session.key });
  const ofAcp = isAcpKey(run.session.key);
  if (session === null) return saidBefore(call, app, ofAcp);
  const open = await app.runs.list({ sessionUid: session.uid, states: openStates }, call.userId);
  if (open.length === 0) return saidBefore(call, app, ofAcp);
  const { run: said } = await app.runs.accept(requestFor(session, text, call));
  const hasTurn = open.some(({ state }) => state === "running" || state === "waiting");
  return steered(said.runId, hasTurn, ofAcp);
}

function steered(runId: string, hasTurn: boolean, ofAcp: boolean): Steered {
  if (!ofAcp) return { runId, mode: hasTurn ? "steered" : "queued" };
  return {
    runId,
    mode: "queued",
    text: "It is told when its turn has ended: agents over ACP take nothing before.",
  };
}

/** The same call again finds what the first has said, whatever became of the child since. */
async function saidBefore({ userId, callId }: Caller, { runs }: App, ofAcp: boolean): Promise<Steered> {
  const known = await runs.get(hashedId("run", userId ?? "", `steer:${callId}`), userId);
  if (known === null) return { gone: true };
  return steered(known.runId, known.mergedInto !== null, ofAcp);
}

function requestFor(
  session: AcceptRequest["session"],
  text: string,
  call: Caller & { readonly session: SessionRecord },
): AcceptRequest {
  const root = call.run === null ? null : { ...call.run.root, hops: call.run.root.hops + 1 };
  const provenance = {
    kind: "inter_session",
    sourceSessionKey: call.session.key,
    sourceTool: "subagents",
    ...root,
    deliveryId: call.callId,
  };
  return {
    session,
    kind: "send",
    message: { role: "user", content: text, provenance },
    idempotencyKey: `steer:${call.callId}`,
    queueMode: "steer",
    options: { origin: "inter_session" },
    provenance,
    ...(root === null ? {} : { root }),
  };
}
