import { createRequire } from "node:module";
import type { Counter, Gauge, Histogram, Registry } from "prom-client";
import { BoundedMap } from "../core/bounded-map.ts";
import type { SkeinEvent, SkeinEventType } from "../core/events.ts";
import type { Usage } from "../core/messages.ts";
import type { OpenWork } from "../runs/contract.ts";
import { openStates } from "../runs/states.ts";
import { amount } from "./genai.ts";
import type { LabelsOf, MetricName, MetricRow, NamesOf } from "./metric-table.ts";
import { metricTable } from "./metric-table.ts";
import type { Watcher } from "./watch.ts";

export interface MetricsSettings {
  /** Whether to add process metrics such as heap and event loop. Defaults to `true`. */
  readonly processMetrics?: boolean;
  /** The maximum number of tools with their own label. Additional tools are labeled `other`. Defaults to 100. */
  readonly maxTools?: number;
  /** The maximum number of models with their own label. Defaults to 100. */
  readonly maxModels?: number;
  /** The maximum number of unanswered requests to models to track. Defaults to 100,000. */
  readonly maxOpen?: number;
}

/**
 * Metrics in Prometheus text format. Counters and histograms cover only the events on the bus, which come from this
 * process.
 */
export interface Metrics extends Watcher {
  /** `open` is the unfinished work in the store, or `null` if it is not known. */
  render(open: OpenWork | null): Promise<{ readonly contentType: string; readonly body: string }>;
  close(): void;
}

type RunEvent<T extends SkeinEventType> = SkeinEvent<T> & { readonly runId: string };

const unknownLane = "unknown";
const maxLanes = 16;
const maxCodes = 64;

export function createMetrics(settings: MetricsSettings = {}): Metrics {
  return new MetricsWatcher(settings);
}

class MetricsWatcher implements Metrics {
  readonly #registry: MetricRegistry;
  /** The model whose answer is pending, by run. */
  readonly #asked: BoundedMap<{ readonly provider: string; readonly model: string }>;
  readonly #tools: BoundedNames;
  readonly #models: BoundedNames;
  readonly #lanes = new BoundedNames(maxLanes);
  readonly #codes = new BoundedNames(maxCodes);

  constructor({
    processMetrics = true,
    maxTools = 100,
    maxModels = 100,
    maxOpen = 100_000,
  }: MetricsSettings) {
    this.#registry = new MetricRegistry(processMetrics);
    this.#asked = new BoundedMap(maxOpen);
    this.#tools = new BoundedNames(maxTools);
    this.#models = new BoundedNames(maxModels);
  }

  readonly onEvent = (event: SkeinEvent): void => {
    if (event.type === "entry.appended") this.#registry.add("skein_entries_appended_total", {});
    else if (event.type.startsWith("outbox."))
      this.#registry.add("skein_outbox_total", { state: event.type.slice("outbox.".length) });
    else if (event.type === "approval.resolved")
      this.#registry.add("skein_approvals_total", { answer: event.answer });
    else if (event.runId !== undefined) this.#takeRun({ ...event, runId: event.runId });
  };

  async render(open: OpenWork | null): Promise<{ contentType: string; body: string }> {
    for (const state of openStates) {
      const count = open === null ? Number.NaN : (open.runs.get(state) ?? 0);
      this.#registry.set("skein_runs_open", { state }, count);
    }
    this.#registry.set("skein_outbox_waiting", {}, open?.outbox ?? Number.NaN);
    return this.#registry.render();
  }

  close(): void {
    this.#asked.clear();
    this.#registry.clear();
  }

  #takeRun(event: RunEvent<SkeinEventType>): void {
    switch (event.type) {
      case "run.started":
        this.#takeStarted(event);
        break;
      case "run.step":
        this.#takeStep(event);
        break;
      case "run.retry":
        this.#takeRetry(event);
        break;
      case "run.tool":
        if (event.phase === "result") this.#takeToolResult(event);
        break;
      case "run.compaction":
        if (event.phase !== "started")
          this.#registry.add("skein_compactions_total", { outcome: event.phase });
        break;
      case "run.ended":
        this.#takeEnded(event);
    }
  }

  #takeStarted({ queuedMs, lane }: RunEvent<"run.started">): void {
    if (queuedMs !== undefined)
      this.#registry.observe("skein_run_queue_seconds", { lane: this.#laneLabel(lane) }, queuedMs);
  }

  #takeStep(event: RunEvent<"run.step">): void {
    const model = this.#modelLabels(event);
    if (event.phase === "asked") {
      this.#asked.set(event.runId, model);
      return;
    }
    this.#asked.take(event.runId);
    const outcome = event.code === undefined ? "ok" : "error";
    this.#registry.add("skein_model_calls_total", { ...model, outcome });
    if (event.usage !== undefined) this.#addUsage(model, event.usage);
  }

  #addUsage(model: { provider: string; model: string }, usage: Usage): void {
    const tokens = {
      input: usage.input,
      output: usage.output,
      cache_read: usage.cacheRead,
      cache_write: usage.cacheWrite,
    };
    for (const [type, count] of Object.entries(tokens))
      if (amount(count) > 0)
        this.#registry.add("skein_model_tokens_total", { ...model, type }, amount(count));
    this.#registry.add("skein_cost_usd_total", {}, amount(usage.cost?.total));
  }

  /** Counts a pending request as failed, unless its failure has already been reported as a step. */
  #takeRetry(event: RunEvent<"run.retry">): void {
    this.#registry.add("skein_model_retries_total", { code: this.#codes.limit(event.code) });
    const asked = this.#asked.take(event.runId);
    if (asked !== undefined) this.#registry.add("skein_model_calls_total", { ...asked, outcome: "error" });
  }

  #takeToolResult(event: RunEvent<"run.tool">): void {
    const tool = this.#tools.limit(event.toolName);
    const outcome = event.isError === true ? "error" : "ok";
    this.#registry.add("skein_tool_calls_total", { tool, outcome });
    if (event.durationMs !== undefined)
      this.#registry.observe("skein_tool_duration_seconds", { tool }, amount(event.durationMs));
  }

  #takeEnded({ runId, state, lane, durationMs }: RunEvent<"run.ended">): void {
    this.#registry.add("skein_runs_total", { state, lane: this.#laneLabel(lane) });
    const asked = this.#asked.take(runId);
    if (asked !== undefined)
      this.#registry.add("skein_model_calls_total", { ...asked, outcome: "unfinished" });
    if (durationMs !== undefined) this.#registry.observe("skein_run_duration_seconds", { state }, durationMs);
  }

  #laneLabel(lane: string | undefined): string {
    return lane === undefined ? unknownLane : this.#lanes.limit(lane);
  }

  /** Limits pairs of label values because even two labels with few values each can have many combinations. */
  #modelLabels({ provider, model }: RunEvent<"run.step">): { provider: string; model: string } {
    const isKnown = this.#models.limit(JSON.stringify([provider, model])) !== otherName;
    return isKnown ? { provider, model } : { provider: otherName, model: otherName };
  }
}

const otherName = "other";
const maxNameChars = 100;

/** Limits the values of a label. The first names are used unchanged, and all others become `other`. */
class BoundedNames {
  readonly #known = new Set<string>();
  readonly #maxSize: number;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  limit(name: string): string {
    if (this.#known.has(name)) return name;
    if (name.length > maxNameChars || !name.isWellFormed() || this.#known.size >= this.#maxSize)
      return otherName;
    this.#known.add(name);
    return name;
  }
}

type Prom = typeof import("prom-client");
type Metric = Counter | Gauge | Histogram;

const load = createRequire(import.meta.url);

/** Keeps the metrics from the table in a separate registry. `prom-client` is loaded on first use, not at startup. */
class MetricRegistry {
  readonly #hasProcessMetrics: boolean;
  #opened: { readonly registry: Registry; readonly metrics: ReadonlyMap<string, Metric> } | null = null;

  constructor(hasProcessMetrics: boolean) {
    this.#hasProcessMetrics = hasProcessMetrics;
  }

  add<N extends NamesOf<"counter">>(name: N, labels: LabelsOf<N>, by = 1): void {
    (this.#open().metrics.get(name) as Counter).inc(labels, by);
  }

  /** A negative duration, for example after a clock change, is treated as zero. */
  observe<N extends NamesOf<"histogram">>(name: N, labels: LabelsOf<N>, ms: number): void {
    (this.#open().metrics.get(name) as Histogram).observe(labels, Math.max(0, ms) / 1000);
  }

  set<N extends NamesOf<"gauge">>(name: N, labels: LabelsOf<N>, value: number): void {
    (this.#open().metrics.get(name) as Gauge).set(labels, value);
  }

  async render(): Promise<{ contentType: string; body: string }> {
    const { registry } = this.#open();
    return { contentType: registry.contentType, body: await registry.metrics() };
  }

  clear(): void {
    this.#opened?.registry.clear();
  }

  #open() {
    if (this.#opened !== null) return this.#opened;
    const prom = load("prom-client") as Prom;
    const registry = new prom.Registry();
    const rows = Object.entries(metricTable) as [MetricName, MetricRow][];
    const metrics = new Map(rows.map(([name, row]) => [name, createMetric(prom, registry, name, row)]));
    if (this.#hasProcessMetrics) prom.collectDefaultMetrics({ register: registry });
    this.#opened = { registry, metrics };
    return this.#opened;
  }
}

function createMetric(prom: Prom, registry: Registry, name: string, row: MetricRow): Metric {
  const settings = { name, help: row.help, labelNames: [...row.labels], registers: [registry] };
  switch (row.kind) {
    case "counter":
      return new prom.Counter(settings);
    case "gauge":
      return new prom.Gauge(settings);
    case "histogram":
      return new prom.Histogram({ ...settings, buckets: [...(row.buckets ?? [])] });
  }
}
