import { present } from "../../core/present.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { Run } from "../../runs/contract.ts";
import { receiptByNotes } from "../attachments/notes.ts";
import type { BetweenDeps, Caller } from "./contract.ts";
import { isTakenUpAgain } from "./send-wait.ts";
import type { SpawnNames } from "./spawn-names.ts";
import type { SpawnRequest } from "./spawn-request.ts";

const longestEntry = 100;

export type SpawnResult = Readonly<Record<string, unknown>>;

const pushed =
  "The result is pushed: it arrives in this session as a message when the sub-agent ends. Do not poll. To wait for it, end your turn with sessions_yield.";
const late = "Its result was not waited for to the end: it arrives in this session as a message.";
const circle =
  "To wait for it would close a circle of waits, so it was not waited for: its result arrives in this session as a message.";

/** What a spawn answers, the first time and every time that the same call is made again. */
export async function spawnResult(
  deps: BetweenDeps,
  caller: Caller,
  request: SpawnRequest,
  { spawnId, runId }: SpawnNames,
  run: Run,
): Promise<SpawnResult> {
  const { sequel } = run.options;
  const told = {
    status: "ok",
    runId,
    childSessionKey: `subagent:${spawnId}`,
    ...present({ label: sequel?.type === "child" ? sequel.label : undefined }),
    mode: request.mode,
    ...present({ threadId: run.options.deliverTo?.threadId }),
    ...(request.attachments.length === 0 ? {} : { attachments: receiptByNotes(request.attachments) }),
  };
  const unfit = await unfitNote(deps, run, request);
  const noted = (note: string) => ({ note: unfit === null ? note : `${note} ${unfit}` });
  if (request.background) return { ...told, ...noted(pushed) };
  const waited = await awaitChild(deps, caller, runId);
  if (waited === "late") return { ...told, ...noted(late) };
  if (waited === "circle") return { ...told, code: "wait_cycle", ...noted(circle) };
  const { state, outcome, usage } = waited;
  return {
    ...told,
    ...present({ note: unfit }),
    result: outcome?.reply ?? "",
    outcome: outcome?.state ?? state,
    ...present({ error: outcome?.error }),
    usage,
  };
}

/** Nothing that was asked for is passed over in silence. */
async function unfitNote(
  { unfitTools }: BetweenDeps,
  { session: { agentId } }: Run,
  { tools }: SpawnRequest,
): Promise<string | null> {
  if (tools === undefined || tools.length === 0) return null;
  const unfit = await unfitTools(
    agentId,
    tools.map((entry) => String(entry).trim()),
  );
  if (unfit.length === 0) return null;
  const shown = unfit.map((entry) => `"${escapeToLine(cutText(entry, longestEntry))}"`).join(", ");
  return `Of tools, ${shown} fits no tool of agent ${agentId}, and allows nothing.`;
}

/**
 * The child's first run, once it has ended and its reply is ours. `late`: it is announced instead. Whoever waits in a run
 * that goes on elsewhere leaves the wait as it is, and the same call waits again there.
 */
async function awaitChild(
  deps: BetweenDeps,
  caller: Caller,
  runId: string,
): Promise<Run | "late" | "circle"> {
  const { runs } = deps;
  const standing = await runs.replyWait(runId);
  if (standing?.state === "late") return "late";
  if (standing?.state !== "taken") {
    const entered = await untilOver(deps, caller, runId);
    if ((await runs.stopAwaiting(runId)) === "late") return entered ? "late" : "circle";
  }
  return (await runs.get(runId, caller.userId)) ?? "late";
}

/** `false`: the wait would have closed a circle. */
async function untilOver(deps: BetweenDeps, caller: Caller, runId: string): Promise<boolean> {
  const { run, signal, whileWaiting } = caller;
  try {
    return (await whileWaiting([runId], () => deps.untilEnded(runId, signal))).entered;
  } catch (error) {
    if (run === null && signal.aborted) return true;
    if (!isTakenUpAgain(caller, error)) await deps.runs.stopAwaiting(runId).catch(deps.report);
    throw error;
  }
}
