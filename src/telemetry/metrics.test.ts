import { register } from "prom-client";
import { describe, expect, test } from "vitest";
import { eventsOf } from "../../test/support/run-events.ts";
import type { SkeinEvent } from "../core/events.ts";
import { EventBus } from "../core/events.ts";
import type { OpenWork } from "../runs/contract.ts";
import type { MetricsSettings } from "./metrics.ts";
import { createMetrics } from "./metrics.ts";
import { watch } from "./watch.ts";

const began = { attempt: 1, model: null, lane: "main" };
const ok = { state: "ok", code: null, error: null, lane: "main" } as const;
const nothing: OpenWork = { runs: new Map(), outbox: 0 };
const model = { provider: "openai", model: "gpt-5" };

/** Returns a metrics page's values by name and labels. Any other line fails the test. */
function valuesOf(body: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const line of body.split("\n")) {
    if (line === "" || /^# (?:HELP \w+ .+|TYPE \w+ (?:counter|gauge|histogram|summary))$/.test(line))
      continue;
    const label = String.raw`\w+="(?:[^"\\\n]|\\["\\n])*"`;
    const match = new RegExp(String.raw`^(\w+(?:\{${label}(?:,${label})*\})?) (\S+)$`).exec(line);
    expect(match, line).not.toBeNull();
    values.set(match?.[1] ?? "", Number(match?.[2]));
  }
  return values;
}

async function measured(
  events: readonly SkeinEvent[],
  settings: MetricsSettings = {},
  open: OpenWork | null = nothing,
) {
  const bus = new EventBus((error) => {
    throw error;
  });
  const metrics = createMetrics({ processMetrics: false, ...settings });
  const { close } = watch(bus, [metrics]);
  for (const event of events) bus.emit(event);
  const { body, contentType } = await metrics.render(open);
  await close();
  return { values: valuesOf(body), body, contentType };
}

describe("metrics", () => {
  test("cover a run from its queue to its end", async () => {
    const a = eventsOf("a");
    const { values, contentType } = await measured([
      a("run.queued", 0, { lane: "main", kind: "user" }),
      a("run.started", 2000, { ...began, queuedMs: 2000 }),
      a("run.sleeping", 3000, { waitingFor: [], wakeAt: 0 }),
      a("run.queued", 4000, { lane: "main", kind: "user" }),
      a("run.started", 5000, began),
      a("run.ended", 12_000, { ...ok, durationMs: 10_000 }),
    ]);
    expect(contentType).toContain("text/plain");
    const expected = {
      'skein_runs_total{state="ok",lane="main"}': 1,
      'skein_run_duration_seconds_sum{state="ok"}': 10,
      'skein_run_queue_seconds_sum{lane="main"}': 2,
      'skein_run_queue_seconds_count{lane="main"}': 1,
    };
    for (const [name, value] of Object.entries(expected))
      expect([name, values.get(name)]).toEqual([name, value]);
  });

  test("show the unfinished work in the store, which can be unknown", async () => {
    const open = { runs: new Map([["queued", 2] as const, ["waiting", 1] as const]), outbox: 3 };
    const { values } = await measured([], {}, open);
    const states = ["queued", "running", "waiting", "sleeping"];
    const shown = (from: ReadonlyMap<string, number>) => [
      ...states.map((state) => from.get(`skein_runs_open{state="${state}"}`)),
      from.get("skein_outbox_waiting"),
    ];
    expect(shown(values)).toEqual([2, 0, 1, 0, 3]);
    expect(shown((await measured([], {}, null)).values)).toEqual(Array(5).fill(Number.NaN));
  });

  test("count model calls by outcome, tokens, cost and retries, each once", async () => {
    const a = eventsOf("a");
    const usage = { input: 10, output: 4, cacheRead: 6, cost: { total: 0.5 } };
    const step = { step: 1, ...model };
    const retry = { attempt: 1, delayMs: 1, code: "overloaded", error: "x" };
    const { values } = await measured([
      a("run.started", 0, began),
      a("run.step", 1, { phase: "asked", ...step }),
      a("run.retry", 2, retry),
      a("run.step", 3, { phase: "answered", ...step, usage }),
      a("run.step", 4, { phase: "asked", ...step }),
      a("run.step", 5, { phase: "answered", ...step, code: "overloaded", usage: { input: Number.NaN } }),
      a("run.retry", 6, retry),
      a("run.step", 7, { phase: "asked", ...step }),
      a("run.ended", 8, { state: "aborted", code: null, error: null }),
    ]);
    const of = 'provider="openai",model="gpt-5"';
    expect(values.get(`skein_model_calls_total{${of},outcome="ok"}`)).toBe(1);
    expect(values.get(`skein_model_calls_total{${of},outcome="error"}`)).toBe(2);
    expect(values.get(`skein_model_calls_total{${of},outcome="unfinished"}`)).toBe(1);
    expect(values.get(`skein_model_tokens_total{${of},type="input"}`)).toBe(10);
    expect(values.get(`skein_model_tokens_total{${of},type="cache_read"}`)).toBe(6);
    expect(values.has(`skein_model_tokens_total{${of},type="cache_write"}`)).toBe(false);
    expect(values.get("skein_cost_usd_total")).toBe(0.5);
    expect(values.get('skein_model_retries_total{code="overloaded"}')).toBe(2);
  });

  test("a run that ends while it waits for a retry counts one request", async () => {
    const a = eventsOf("a");
    const { values } = await measured([
      a("run.started", 0, began),
      a("run.step", 1, { phase: "asked", step: 1, ...model }),
      a("run.retry", 2, { attempt: 1, delayMs: 1, code: "overloaded", error: "x" }),
      a("run.ended", 3, { state: "aborted", code: null, error: null }),
    ]);
    const calls = [...values].filter(([name]) => name.startsWith("skein_model_calls_total"));
    expect(calls).toEqual([['skein_model_calls_total{provider="openai",model="gpt-5",outcome="error"}', 1]]);
  });

  test("cover tools, compactions, entries, outbox and approvals", async () => {
    const a = eventsOf("a");
    const box = { outboxId: "o1", channel: "slack" };
    const tool = { toolCallId: "c", toolName: "read" };
    const { values } = await measured([
      a("run.started", 0, began),
      a("run.tool", 1, { phase: "call", ...tool }),
      a("run.tool", 2, { phase: "result", ...tool, isError: true, durationMs: 1500 }),
      a("run.compaction", 3, { phase: "started", measure: "summary" }),
      a("run.compaction", 4, { phase: "done", measure: "summary" }),
      a("entry.appended", 5, { entry: {} as SkeinEvent<"entry.appended">["entry"] }),
      a("outbox.queued", 6, box),
      a("outbox.retry", 7, { ...box, nextAt: 0, error: "x" }),
      a("outbox.queued", 8, { ...box, outboxId: "o2" }),
      a("outbox.dead", 9, { ...box, outboxId: "o2", error: "x" }),
      a("run.waiting", 10, { for: "approval" }),
      a("approval.resolved", 11, { approvalId: "p", answer: "denied", by: null }),
      a("run.resumed", 12, {}),
    ]);
    const expected = {
      'skein_tool_calls_total{tool="read",outcome="error"}': 1,
      'skein_tool_duration_seconds_sum{tool="read"}': 1.5,
      'skein_compactions_total{outcome="done"}': 1,
      skein_entries_appended_total: 1,
      'skein_outbox_total{state="queued"}': 2,
      'skein_outbox_total{state="dead"}': 1,
      'skein_approvals_total{answer="denied"}': 1,
    };
    for (const [name, value] of Object.entries(expected))
      expect([name, values.get(name)]).toEqual([name, value]);
  });

  test("external names become a limited number of labels", async () => {
    const events = Array.from({ length: 500 }, (_, index) => {
      const a = eventsOf(`run${index}`);
      const name = index % 2 === 0 ? `tool${index}` : `"}\n\\${"x".repeat(index)}`;
      return [
        a("run.started", 0, { ...began, lane: name, queuedMs: 1 }),
        a("run.step", 1, { phase: "asked", step: 1, provider: name, model: name }),
        a("run.tool", 1, { phase: "result", toolCallId: "c", toolName: name, isError: false, durationMs: 1 }),
        a("run.step", 2, { phase: "answered", step: 1, provider: name, model: name }),
        a("run.retry", 3, { attempt: 1, delayMs: 1, code: name, error: name }),
      ];
    }).flat();
    const { values, body } = await measured(events, { maxTools: 3, maxModels: 3, maxOpen: 50 });
    const tools = [...values.keys()].filter((name) => name.startsWith("skein_tool_calls_total"));
    expect(tools).toHaveLength(4);
    expect(values.get('skein_tool_calls_total{tool="other",outcome="ok"}')).toBe(497);
    expect([...values.keys()].filter((name) => name.startsWith("skein_model_calls_total"))).toHaveLength(4);
    expect([...values.keys()].filter((name) => name.startsWith("skein_model_retries")).length).toBe(65);
    const lanes = [...values.keys()].filter((name) => name.startsWith("skein_run_queue_seconds_sum"));
    expect(lanes).toHaveLength(17);
    expect(body.length).toBeLessThan(50_000);
  });

  test("register nothing process-wide; process metrics are optional", async () => {
    const [first, second] = [createMetrics(), createMetrics({ processMetrics: false })];
    expect((await first.render(nothing)).body).toContain("nodejs_heap_size_used_bytes");
    expect((await second.render(nothing)).body).not.toContain("nodejs_");
    expect(register.getMetricsAsArray()).toEqual([]);
    first.close();
  });
});
