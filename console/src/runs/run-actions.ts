import type { Change } from "../connect/gateway.tsx";
import { useChange } from "../connect/gateway.tsx";
import { userParam } from "../paths.ts";
import { useForEach } from "../ui/selection.tsx";
import type { RunRow } from "./run-state.tsx";

type Act = (change: Change, run: RunRow) => Promise<unknown>;

const abort: Act = (change, run) =>
  change("runs.abort", { runId: run.runId, ...userParam(run), reason: "Aborted in the console." });
const retry: Act = (change, run) => change("runs.retry", { runId: run.runId, ...userParam(run) });
const release: Act = (change, run) => change("runs.release", { runId: run.runId, ...userParam(run) });

/** Actions on runs. Rows change because of the resulting events, not the response. */
export function useRunActions() {
  const change = useChange();
  const { isBusy, error, clearError, forEach } = useForEach<RunRow>();
  return {
    isBusy,
    error,
    clearError,
    abort: (runs: readonly RunRow[]) => forEach(runs, (run) => abort(change, run)),
    retry: (runs: readonly RunRow[]) => forEach(runs, (run) => retry(change, run)),
    release: (runs: readonly RunRow[]) => forEach(runs, (run) => release(change, run)),
  };
}
