import type { SkeinEvent, SkeinEventType } from "../core/events.ts";
import type { Usage } from "../core/messages.ts";
import { openStates } from "../runs/states.ts";
import { BoundedMap, BoundedNames, otherName } from "./bounded.ts";
import { amount } from "./genai.ts";
import { MetricRegistry } from "./registry.ts";
import type { Watcher } from "./watch.ts";

export interface MetricsSettings {
  /** Heap, event loop and the like; by default `true`. */
  readonly processMetrics?: boolean;
  /** Distinct tools that have a label of their own, further ones are `other`; by default 100. */
  readonly mostTools?: number;
  /** Distinct models, likewise; by default 100. */
  readonly mostModels?: number;
  /** Open runs and waiting messages that are followed at once; by default 100,000. */
  readonly mostOpen?: number;
}

/** Metrics of everything on the bus, as Prometheus reads them. */
export interface Metrics extends Watcher {
  render(): Promise<{ readonly contentType: string; readonly body: string }>;
  close(): void;
}

interface OpenRun {
  state: (typeof openStates)[number];
  lane: string;
  queuedAt: number | null;
  startedAt: number | null;
  /** The model that has not answered yet. */
  asked: { readonly provider: string; readonly model: string } | null;
}

type RunEvent<T extends SkeinEventType> = SkeinEvent<T> & { readonly runId: string };

const unknownLane = "unknown";
const mostLanes = 16;
const mostCodes = 64;

export function createMetrics(settings: MetricsSettings = {}): Metrics {
  const registry = new MetricRegistry({ processMetrics: settings.processMetrics ?? true });
  const watcher = new MetricsWatcher(registry, settings);
  return { onEvent: watcher.onEvent, render: () => watcher.render(), close: () => watcher.close() };
}

/** What comes from outside becomes a label only while there are few of it. */
class MetricsWatcher {
  readonly #registry: MetricRegistry;
  readonly #runs: BoundedMap<OpenRun>;
  readonly #waiting: BoundedMap<true>;
  readonly #tools: BoundedNames;
  readonly #models: BoundedNames;
  readonly #lanes = new BoundedNames(mostLanes);
  readonly #codes = new BoundedNames(mostCodes);

  constructor(registry: MetricRegistry, settings: MetricsSettings) {
    this.#registry = registry;
    this.#runs = new BoundedMap(settings.mostOpen ?? 100_000);
    this.#waiting = new BoundedMap(settings.mostOpen ?? 100_000);
    this.#tools = new BoundedNames(settings.mostTools ?? 100);
    this.#models = new BoundedNames(settings.mostModels ?? 100);
  }

  readonly onEvent = (event: SkeinEvent): void => {
    if (event.type === "entry.appended") this.#registry.add("skein_entries_appended_total", {});
    else if (event.type.startsWith("outbox.")) this.#ofOutbox(event);
    else if (event.type === "approval.resolved") {
      this.#registry.add("skein_approvals_total", { answer: event.answer });
    } else if (event.runId !== undefined) this.#ofRun({ ...event, runId: event.runId });
  };

  async render(): Promise<{ contentType: string; body: string }> {
    const counts = new Map<string, number>();
    for (const { state } of this.#runs.values()) counts.set(state, (counts.get(state) ?? 0) + 1);
    for (const state of openStates) {
      this.#registry.set("skein_runs_open", { state }, counts.get(state) ?? 0);
    }
    this.#registry.set("skein_outbox_waiting", {}, this.#waiting.size);
    return { contentType: this.#registry.contentType, body: await this.#registry.text() };
  }

  close(): void {
    this.#runs.clear();
    this.#waiting.clear();
    this.#registry.clear();
  }

  #ofRun(event: RunEvent<SkeinEventType>): void {
    switch (event.type) {
      case "run.queued":
        this.#queued(event);
        break;
      case "run.started":
        this.#started(event);
        break;
      case "run.step":
        this.#step(event);
        break;
      case "run.retry":
        this.#retried(event);
        break;
      case "run.tool":
        if (event.phase === "result") this.#returned(event);
        break;
      case "run.compaction":
        if (event.phase !== "started") {
          this.#registry.add("skein_compactions_total", { outcome: event.phase });
        }
        break;
      case "run.waiting":
        this.#enter(event.runId, "waiting");
        break;
      case "run.resumed":
        this.#enter(event.runId, "running");
        break;
      case "run.sleeping":
        this.#enter(event.runId, "sleeping");
        break;
      case "run.ended":
        this.#ended(event);
    }
  }

  #queued({ runId, at, lane }: RunEvent<"run.queued">): void {
    const known = this.#runs.get(runId);
    if (known !== undefined) known.state = "queued";
    else {
      const run = { lane: this.#lanes.of(lane), queuedAt: at, startedAt: null, asked: null };
      this.#runs.set(runId, { ...run, state: "queued" });
    }
  }

  #started({ runId, at }: RunEvent<"run.started">): void {
    const run = this.#runs.get(runId) ?? {
      state: "running",
      lane: unknownLane,
      queuedAt: null,
      startedAt: null,
      asked: null,
    };
    if (run.startedAt === null && run.queuedAt !== null) {
      this.#registry.observe("skein_run_queue_seconds", { lane: run.lane }, at - run.queuedAt);
    }
    run.state = "running";
    run.startedAt ??= at;
    this.#runs.set(runId, run);
  }

  /** Only from that state, if one is given. */
  #enter(runId: string, state: OpenRun["state"]): void {
    const run = this.#runs.get(runId);
    if (run !== undefined) run.state = state;
  }

  #step(event: RunEvent<"run.step">): void {
    const run = this.#runs.get(event.runId);
    const model = this.#modelLabels(event);
    if (event.phase === "asked") {
      if (run !== undefined) run.asked = model;
      return;
    }
    if (run !== undefined) run.asked = null;
    const outcome = event.code === undefined ? "ok" : "error";
    this.#registry.add("skein_model_calls_total", { ...model, outcome });
    if (event.usage !== undefined) this.#spent(model, event.usage);
  }

  #spent(model: { provider: string; model: string }, usage: Usage): void {
    const tokens = {
      input: usage.input,
      output: usage.output,
      cache_read: usage.cacheRead,
      cache_write: usage.cacheWrite,
    };
    for (const [type, count] of Object.entries(tokens)) {
      if (amount(count) > 0) {
        this.#registry.add("skein_model_tokens_total", { ...model, type }, amount(count));
      }
    }
    this.#registry.add("skein_cost_usd_total", {}, amount(usage.cost?.total));
  }

  /** A request that is open has failed; one that was told as failed is not counted again. */
  #retried(event: RunEvent<"run.retry">): void {
    const run = this.#runs.get(event.runId);
    this.#registry.add("skein_model_retries_total", { code: this.#codes.of(event.code) });
    if (run === undefined || run.asked === null) return;
    this.#registry.add("skein_model_calls_total", { ...run.asked, outcome: "error" });
    run.asked = null;
  }

  #returned(event: RunEvent<"run.tool">): void {
    const tool = this.#tools.of(event.toolName);
    const outcome = event.isError === true ? "error" : "ok";
    this.#registry.add("skein_tool_calls_total", { tool, outcome });
    if (event.durationMs !== undefined) {
      this.#registry.observe("skein_tool_duration_seconds", { tool }, amount(event.durationMs));
    }
  }

  #ended(event: RunEvent<"run.ended">): void {
    const run = this.#runs.take(event.runId);
    const { state } = event;
    this.#registry.add("skein_runs_total", { state, lane: run?.lane ?? unknownLane });
    if (run === undefined) return;
    if (run.asked !== null) {
      this.#registry.add("skein_model_calls_total", { ...run.asked, outcome: "unfinished" });
    }
    if (run.startedAt !== null) {
      this.#registry.observe("skein_run_duration_seconds", { state }, event.at - run.startedAt);
    }
  }

  #ofOutbox(event: SkeinEvent): void {
    if (!("outboxId" in event)) return;
    const state = event.type.slice("outbox.".length);
    this.#registry.add("skein_outbox_total", { state });
    if (state === "queued" || state === "retry") this.#waiting.set(event.outboxId, true);
    else this.#waiting.take(event.outboxId);
  }

  /** Bounded as a pair: both have few values, or their product has many. */
  #modelLabels({ provider, model }: RunEvent<"run.step">): { provider: string; model: string } {
    const isKnown = this.#models.of(JSON.stringify([provider, model])) !== otherName;
    return isKnown ? { provider, model } : { provider: otherName, model: otherName };
  }
}
