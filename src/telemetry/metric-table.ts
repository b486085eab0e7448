/** All of Skein's metrics. `docs/observability.md` lists them, and a test compares the two. */

export interface MetricRow {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
  /** The histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
}

const short = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const long = [0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];

export const metricTable = {
  skein_runs_total: { kind: "counter", labels: ["state", "lane"], help: "Runs that have ended" },
  skein_runs_open: { kind: "gauge", labels: ["state"], help: "Runs that have not ended" },
  skein_run_duration_seconds: {
    kind: "histogram",
    labels: ["state"],
    help: "Time from a run's first start to its end, including waiting and sleeping",
    buckets: long,
  },
  skein_run_queue_seconds: {
    kind: "histogram",
    labels: ["lane"],
    help: "Time from accepting input to the first start of its run",
    buckets: short,
  },
  skein_model_calls_total: {
    kind: "counter",
    labels: ["provider", "model", "outcome"],
    help: "Requests to models",
  },
  skein_model_tokens_total: {
    kind: "counter",
    labels: ["provider", "model", "type"],
    help: "Tokens as counted by the providers",
  },
  skein_cost_usd_total: { kind: "counter", labels: [], help: "Cost of answers with a known price" },
  skein_model_retries_total: {
    kind: "counter",
    labels: ["code"],
    help: "Failed requests that were retried",
  },
  skein_tool_calls_total: {
    kind: "counter",
    labels: ["tool", "outcome"],
    help: "Tool calls that have ended",
  },
  skein_tool_duration_seconds: { kind: "histogram", labels: ["tool"], help: "Tool calls", buckets: short },
  skein_compactions_total: {
    kind: "counter",
    labels: ["outcome"],
    help: "Recovery steps that reduced the size of a context",
  },
  skein_entries_appended_total: { kind: "counter", labels: [], help: "Entries written to sessions" },
  skein_outbox_total: { kind: "counter", labels: ["state"], help: "Outcomes of messages to channels" },
  skein_outbox_waiting: {
    kind: "gauge",
    labels: [],
    help: "Messages that have not been delivered to a channel yet",
  },
  skein_approvals_total: { kind: "counter", labels: ["answer"], help: "Approvals that have been resolved" },
} as const satisfies Record<string, MetricRow>;

export type MetricName = keyof typeof metricTable;
export type LabelsOf<N extends MetricName> = Record<(typeof metricTable)[N]["labels"][number], string>;
export type NamesOf<K extends MetricRow["kind"]> = {
  [N in MetricName]: (typeof metricTable)[N]["kind"] extends K ? N : never;
}[MetricName];
