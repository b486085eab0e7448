import type { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { LabelsOf, MetricName, MetricRow, NamesOf } from "./metric-table.ts";
import { metricTable } from "./metric-table.ts";

type Prom = typeof import("prom-client");
type Metric = Counter | Gauge | Histogram;

/** The metrics of the table in a registry of their own; nothing is registered for the whole process. */
export class MetricRegistry {
  readonly #registry: Registry;
  readonly #metrics = new Map<string, Metric>();

  constructor(prom: Prom, settings: { readonly processMetrics: boolean }) {
    this.#registry = new prom.Registry();
    for (const [name, row] of Object.entries(metricTable) as [MetricName, MetricRow][]) {
      this.#metrics.set(name, make(prom, this.#registry, name, row));
    }
    if (settings.processMetrics) prom.collectDefaultMetrics({ register: this.#registry });
  }

  add<N extends NamesOf<"counter">>(name: N, labels: LabelsOf<N>, by = 1): void {
    (this.#metrics.get(name) as Counter).inc(labels, by);
  }

  /** A moment before now, as after a step of the clock, counts as none. */
  observe<N extends NamesOf<"histogram">>(name: N, labels: LabelsOf<N>, ms: number): void {
    (this.#metrics.get(name) as Histogram).observe(labels, Math.max(0, ms) / 1000);
  }

  set<N extends NamesOf<"gauge">>(name: N, labels: LabelsOf<N>, value: number): void {
    (this.#metrics.get(name) as Gauge).set(labels, value);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  clear(): void {
    this.#registry.clear();
  }
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
