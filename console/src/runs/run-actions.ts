import type { SkeinClient } from "skein/client";
import { useGateway } from "../connect/gateway.tsx";
import { userParam } from "../paths.ts";
import { useForEach } from "../ui/selection.tsx";
import type { RunRow } from "./run-state.tsx";

type Act = (client: SkeinClient, run: RunRow) => Promise<unknown>;

const abort: Act = (client, run) =>
  client.call("runs.abort", { runId: run.runId, ...userParam(run), reason: "Aborted in the console." });
const retry: Act = (client, run) => client.call("runs.retry", { runId: run.runId, ...userParam(run) });
const release: Act = (client, run) => client.call("runs.release", { runId: run.runId, ...userParam(run) });

/** Actions on runs. Rows change because of the resulting events, not the response. */
export function useRunActions() {
  const { client } = useGateway();
  const { isBusy, error, clearError, forEach } = useForEach<RunRow>();
  return {
    isBusy,
    error,
    clearError,
    abort: (runs: readonly RunRow[]) => forEach(runs, (run) => abort(client, run)),
    retry: (runs: readonly RunRow[]) => forEach(runs, (run) => retry(client, run)),
    release: (runs: readonly RunRow[]) => forEach(runs, (run) => release(client, run)),
  };
}
