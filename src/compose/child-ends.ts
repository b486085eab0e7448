import type { EventBus } from "../core/events.ts";
import type { RunStore } from "../runs/contract.ts";
import { toldOfEnd } from "../sessions/between/spawn-told.ts";
import type { HookRegistry } from "../sessions/hooks.ts";

/** Tells hooks of children that have ended in this process. */
export function tellOfChildEnds(
  bus: EventBus,
  runs: Pick<RunStore, "get">,
  hooks: HookRegistry,
  report: (error: unknown) => void,
): () => void {
  const tell = async (runId: string) => {
    const run = await runs.get(runId);
    const told = run === null ? null : toldOfEnd(run);
    if (told !== null) await hooks.notify("subagent_ended", told);
  };
  return bus.subscribe((event) => {
    if (event.type !== "run.ended" || event.runId === undefined || !hooks.has("subagent_ended")) return;
    tell(event.runId).catch(report);
  });
}
