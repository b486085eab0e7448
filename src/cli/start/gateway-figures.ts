import type { HubStats } from "../../gateway/events/contract.ts";

/** What a gateway counts beside its Skein, as Prometheus reads it. Methods are of a table, so labels are few. */
export class GatewayFigures {
  readonly #calls = new Map<string, number>();
  readonly #reloads = new Map<string, number>();

  /** Counts how a call ends. */
  async calling<T>(method: string, call: () => Promise<T>): Promise<T> {
    let outcome = "error";
    try {
      const result = await call();
      outcome = "ok";
      return result;
    } finally {
      count(this.#calls, `method="${method}",outcome="${outcome}"`);
    }
  }

  reloaded(outcome: "done" | "refused"): void {
    count(this.#reloads, `outcome="${outcome}"`);
  }

  /** Behind what the Skein has counted. */
  join(
    metrics: { readonly contentType: string; readonly body: string } | null,
    { subscriptions, sent, dropped, droppedReaders }: HubStats,
  ): { readonly contentType: string; readonly body: string } | null {
    if (metrics === null) return null;
    const own = [
      ...lines("skein_gateway_subscriptions", "gauge", "Who is told of events", of(subscriptions)),
      ...lines("skein_gateway_events_sent_total", "counter", "Events that went out", of(sent)),
      ...lines(
        "skein_gateway_events_dropped_total",
        "counter",
        "Events left out for slow readers",
        of(dropped),
      ),
      ...lines(
        "skein_gateway_readers_dropped_total",
        "counter",
        "Readers that were given up",
        of(droppedReaders),
      ),
      ...lines("skein_gateway_calls_total", "counter", "Calls of methods that have ended", this.#calls),
      ...lines("skein_gateway_reloads_total", "counter", "Changes of the configuration", this.#reloads),
    ];
    return { ...metrics, body: `${metrics.body.trimEnd()}\n\n${own.join("\n")}\n` };
  }
}

function of(value: number): ReadonlyMap<string, number> {
  return new Map([["", value]]);
}

function count(values: Map<string, number>, labels: string): void {
  values.set(labels, (values.get(labels) ?? 0) + 1);
}

function lines(name: string, kind: string, help: string, values: ReadonlyMap<string, number>): string[] {
  const each = [...values].map(([labels, value]) => `${name}${labels === "" ? "" : `{${labels}}`} ${value}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`, ...each];
}
