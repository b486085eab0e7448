import type { AcceptRequest, Child } from "../../runs/contract.ts";
import type { Caller } from "../../sessions/between/contract.ts";
import type { SessionRecord } from "../../store/contract.ts";
import type { ToolDeps } from "../contract.ts";
import { ToolInputError } from "../tool-input-error.ts";

const longestMessage = 4000;

/** What is said to a child, fit to be said. */
export function steeringText(message: string | undefined): string {
  if (message === undefined) throw new ToolInputError("message required", "message");
  if (message.length <= longestMessage) return message;
  const problem = `Message too long (${message.length} chars, max ${longestMessage}).`;
  throw new ToolInputError(problem, "message");
}

export type Steered =
  | { readonly runId: string; readonly mode: "steered" | "queued" }
  /** There is nobody to say it to any more. */
  | { readonly gone: true };

/**
 * Says something to a child in the middle of its turn: that turn takes it in at its next step and loses nothing. A child that
 * sleeps, or has not begun, takes it as a turn of its own. Under the caller's root, one hop further.
 */
export async function steerChild(
  { run }: Child,
  text: string,
  call: Caller & { readonly session: SessionRecord },
  deps: ToolDeps,
): Promise<Steered> {
  const session = deps.work.find(call.userId, { key: run.session.key });
  if (session === null) return { gone: true };
  const states = ["queued", "running", "waiting", "sleeping"] as const;
  const open = await deps.runs.list({ sessionUid: session.uid, states }, call.userId);
  if (open.length === 0) return { gone: true };
  const { run: said } = await deps.runs.accept(requestFor(session, text, call));
  const hasTurn = open.some(({ state }) => state === "running" || state === "waiting");
  return { runId: said.runId, mode: hasTurn ? "steered" : "queued" };
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
