import { createRequire } from "node:module";
import type { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { LabelsOf, MetricName, MetricRow, NamesOf } from "./metric-table.ts";
import { metricTable } from "./metric-table.ts";

type Prom = typeof import("prom-client");
type Metric = Counter | Gauge | Histogram;

interface Opened {
  readonly registry: Registry;
  readonly metrics: ReadonlyMap<string, Metric>;
}

/** Loaded with the first thing that is counted, or the first look: a start need not wait for it. */
const load = createRequire(import.meta.url);

/** The metrics of the table in a registry of their own; nothing is registered for the whole process. */
export class MetricRegistry {
  readonly #settings: { readonly processMetrics: boolean };
  #opened: Opened | null = null;

  constructor(settings: { readonly processMetrics: boolean }) {
    this.#settings = settings;
  }

  add<N extends NamesOf<"counter">>(name: N, labels: LabelsOf<N>, by = 1): void {
    (this.#open().metrics.get(name) as Counter).inc(labels, by);
  }

  /** A moment before now, as after a step of the clock, counts as none. */
  observe<N extends NamesOf<"histogram">>(name: N, labels: LabelsOf<N>, ms: number): void {
    (this.#open().metrics.get(name) as Histogram).observe(labels, Math.max(0, ms) / 1000);
  }

  set<N extends NamesOf<"gauge">>(name: N, labels: LabelsOf<N>, value: number): void {
    (this.#open().metrics.get(name) as Gauge).set(labels, value);
  }

  get contentType(): string {
    return this.#open().registry.contentType;
  }

  text(): Promise<string> {
    return this.#open().registry.metrics();
  }

  clear(): void {
    this.#opened?.registry.clear();
  }

  #open(): Opened {
    this.#opened ??= opened(load("prom-client") as Prom, this.#settings);
    return this.#opened;
  }
}

function opened(prom: Prom, settings: { readonly processMetrics: boolean }): Opened {
  const registry = new prom.Registry();
  const rows = Object.entries(metricTable) as [MetricName, MetricRow][];
  const metrics = new Map(rows.map(([name, row]) => [name, make(prom, registry, name, row)]));
  if (settings.processMetrics) prom.collectDefaultMetrics({ register: registry });
  return { registry, metrics };
}

function make(prom: Prom, registry: Registry, name: string, row: MetricRow): Metric {
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
