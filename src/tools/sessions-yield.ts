import * as s from "../core/schema.ts";
import { escapeToLine } from "../core/text.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { Run } from "../runs/contract.ts";
import type { App } from "../sessions/app.ts";
import type { SessionTool, ToolAnswer, ToolResult } from "./contract.ts";
import { awaitedOf, namedRuns, startedAndOpen } from "./watching/awaited.ts";
import { waitCircle } from "./watching/wait-circle.ts";

const parameters = s.closed({
  message: s.optional(s.string({ description: 'Why the turn ends. Default "Turn yielded."' })),
  waitFor: s.optional(
    s.array(s.string({ maxLength: 64 }), {
      description: "Ids of runs to wait for. Default: every open run that this one started.",
      maxItems: 100,
    }),
  ),
});

const unlessSaid = "Turn yielded.";

/** Ends the turn until what it waits for has arrived. The run sleeps durably, by the result that stands in the session. */
export const sessionsYield: SessionTool = {
  name: "sessions_yield",
  label: "Yield",
  description:
    "End your current turn. Use after spawning subagents to receive their results as the next message.",
  parameters,
  output: outputs.sessionsYield,
  isLast: true,
  execute: async (args, call, app) => {
    if (call.session === null) return refused("no_session", "No session context");
    if (call.run === null) return refused("yield_not_supported", "Yield not supported in this context");
    const message = typeof args.message === "string" ? args.message : unlessSaid;
    const named = Array.isArray(args.waitFor) ? [...new Set((args.waitFor as string[]).map(String))] : [];
    const found = named.length === 0 ? null : await namedRuns(named, call, app);
    if (found !== null && "unknown" in found) return unknownRuns(found.unknown);
    const waitingFor = await targetsOf(found?.runs ?? null, call.run, app);
    if (waitingFor.length === 0) return nothing(named.length > 0);
    const circle = await waitCircle(app.runs, call.run.runId, waitingFor);
    if (circle !== null) return inCircle(circle);
    return { result: { status: "yielded", message, waitingFor }, sleep: { waitFor: waitingFor } };
  },
};

function targetsOf(named: readonly Run[] | null, run: Run, app: App): Promise<readonly string[]> {
  return named === null ? startedAndOpen(run, app) : awaitedOf(named, run, app);
}

function unknownRuns(ids: readonly string[]): ToolAnswer {
  const which = `${ids.length === 1 ? "Run" : "Runs"} not found: ${ids.map((id) => escapeToLine(id)).join(", ")}`;
  return refused("not_found", `${which} (use the runId that sessions_send or sessions_spawn gave)`);
}

function nothing(isNamed: boolean): ToolAnswer {
  const what = isNamed ? "what you named has ended and was told of" : "no run that you started is open";
  return refused("nothing_to_wait_for", `There is nothing to wait for: ${what}. Go on with your turn.`);
}

function inCircle(cycle: readonly string[]): ToolAnswer {
  const error = `This wait would never end: ${cycle.join(" waits for ")}. Go on, or name other runs in waitFor.`;
  return refused("wait_cycle", error, { cycle });
}

function refused(code: string, error: string, more: ToolResult = {}): ToolAnswer {
  return { result: { status: "error", code, error, ...more } };
}
