import * as api from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import * as conventions from "@opentelemetry/semantic-conventions/incubating";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { eventsOf, start } from "../../test/support/run-events.ts";
import { EventBus } from "../core/events.ts";
import { attributes } from "./genai.ts";
import { SpanWatcher } from "./spans.ts";

const model = { provider: "google", model: "gemini-3-pro" };
const ok = { state: "ok", code: null, error: null } as const;
const began = { attempt: 1, model: null };

function watched(more: { maxOpen?: number; userIds?: boolean } = {}) {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const clock = { now: () => start + 99_000 };
  const problems: unknown[] = [];
  const bus = new EventBus((error) => problems.push(error));
  const spans = new SpanWatcher({ api, tracer: provider.getTracer("test"), clock, ...more });
  bus.subscribe(spans.onEvent);
  const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
  const one = (name: string) => {
    const found = named(name);
    expect(found.map((span) => span.name)).toEqual([name]);
    return found[0] as ReadableSpan;
  };
  return { emit: bus.emit, spans, all: () => exporter.getFinishedSpans(), named, one, problems };
}

const msOf = ([seconds, nanos]: [number, number]) => seconds * 1000 + nanos / 1e6 - start;
const idOf = (span: ReadableSpan | undefined) => span?.spanContext().spanId;

describe("the spans of a run", () => {
  test("[OBS1] [OBS12] nest a run, its model steps and its tool calls, at the times of their events", () => {
    const { emit, one, all } = watched();
    const event = eventsOf("r1", { userId: "ann" });
    const tool = { toolCallId: "c1", toolName: "read" };
    emit(event("run.queued", 0, { lane: "main", kind: "user" }));
    emit(event("run.started", 40, began));
    emit(event("run.step", 50, { phase: "asked", step: 1, ...model }));
    const usage = { input: 10, cacheRead: 100, cacheWrite: 5, output: 7 };
    emit(event("run.step", 90, { phase: "answered", step: 1, ...model, usage, finishReason: "toolUse" }));
    emit(event("run.tool", 100, { phase: "call", ...tool, arguments: { path: "hidden.txt" } }));
    const content = [{ type: "text", text: "hidden" }];
    emit(event("run.tool", 130, { phase: "result", ...tool, isError: false, content, durationMs: 30 }));
    emit(event("run.ended", 200, ok));

    const run = one("invoke_agent main");
    expect(run.attributes).toEqual({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.id": "main",
      "gen_ai.agent.name": "main",
      "gen_ai.conversation.id": "s1",
      "gen_ai.provider.name": "gcp.gemini",
      "gen_ai.request.model": "gemini-3-pro",
      "skein.session.key": "agent:main:main",
      "skein.run.id": "r1",
      "skein.run.lane": "main",
      "skein.run.queue_ms": 40,
      "skein.run.attempt": 1,
      "skein.run.state": "ok",
    });
    expect([msOf(run.startTime), msOf(run.endTime)]).toEqual([40, 200]);
    expect(run.parentSpanContext).toBeUndefined();
    const chat = one("chat gemini-3-pro");
    expect(chat.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "gcp.gemini",
      "gen_ai.usage.input_tokens": 115,
      "gen_ai.usage.cache_read.input_tokens": 100,
      "gen_ai.usage.cache_creation.input_tokens": 5,
      "gen_ai.usage.output_tokens": 7,
      "gen_ai.response.finish_reasons": ["tool_call"],
      "gen_ai.conversation.id": "s1",
    });
    expect([chat.kind, msOf(chat.startTime), msOf(chat.endTime)]).toEqual([api.SpanKind.CLIENT, 50, 90]);
    const call = one("execute_tool read");
    expect(call.attributes).toMatchObject({ "gen_ai.tool.name": "read", "gen_ai.tool.call.id": "c1" });
    expect([msOf(call.startTime), msOf(call.endTime)]).toEqual([100, 130]);
    for (const child of [chat, call]) expect(child.parentSpanContext?.spanId).toBe(idOf(run));
    const written = JSON.stringify(all().map((span) => [span.name, span.attributes, span.events]));
    expect(written).not.toContain("hidden");
    expect(written).not.toContain("ann");
  });

  test("[OBS1] every convention attribute is valid", () => {
    const known = new Set<unknown>(Object.values(conventions));
    const ours = Object.values(attributes).filter((name) => !name.startsWith("skein."));
    expect(ours.filter((name) => !known.has(name))).toEqual([]);
  });

  test("[OBS12] a user is named only if that is configured", () => {
    const { emit, one } = watched({ userIds: true });
    const event = eventsOf("r1", { userId: "ann" });
    emit(event("run.started", 0, began));
    emit(event("run.ended", 1, ok));
    expect(one("invoke_agent main").attributes["skein.user.id"]).toBe("ann");
  });

  test("a child's span is under that of the run that started it, or linked if that run has ended", () => {
    const { emit, named, one } = watched();
    const [parent, early, late] = [
      eventsOf("p"),
      eventsOf("c1", { sessionKey: "agent:early:main" }),
      eventsOf("c2", { sessionKey: "agent:late:main" }),
    ];
    emit(parent("run.started", 0, began));
    emit(early("run.queued", 1, { lane: "subagent", kind: "spawn", startedBy: "p" }));
    emit(early("run.started", 2, began));
    emit(parent("run.ended", 3, ok));
    emit(late("run.started", 4, { ...began, startedBy: "p" }));
    emit(late("run.ended", 5, ok));
    emit(early("run.ended", 6, ok));
    const [top] = named("invoke_agent main");
    expect(one("invoke_agent early").parentSpanContext?.spanId).toBe(idOf(top));
    const linked = one("invoke_agent late");
    expect(linked.parentSpanContext).toBeUndefined();
    expect(linked.links.map(({ context }) => context.spanId)).toEqual([idOf(top)]);
  });

  test.each([
    ["retried as a step", true],
    ["retried without an event", false],
  ])("a retry ends the failed request and is recorded on the run: %s", (_, isTold) => {
    const { emit, named, one } = watched();
    const event = eventsOf("r1");
    emit(event("run.started", 0, began));
    emit(event("run.step", 10, { phase: "asked", step: 1, ...model }));
    emit(event("run.retry", 20, { attempt: 1, delayMs: 5, code: "overloaded", error: "hidden" }));
    if (isTold) emit(event("run.step", 25, { phase: "asked", step: 1, ...model }));
    emit(event("run.step", 60, { phase: "answered", step: 1, ...model }));
    emit(event("run.ended", 70, ok));
    const [failed, good] = named("chat gemini-3-pro");
    expect(failed?.attributes["error.type"]).toBe("overloaded");
    expect(failed?.status).toEqual({ code: api.SpanStatusCode.ERROR });
    expect(good && [msOf(good.startTime), msOf(good.endTime), good.status.code]).toEqual([25, 60, 0]);
    const told = one("invoke_agent main").events;
    expect(told.map((each) => each.name)).toEqual(["skein.retry"]);
    expect(JSON.stringify(told)).not.toContain("hidden");
  });

  test("a failed step and a failed tool have the type of their error", () => {
    const { emit, one } = watched();
    const event = eventsOf("r1");
    emit(event("run.started", 0, began));
    emit(event("run.step", 1, { phase: "asked", step: 1, ...model }));
    emit(event("run.step", 2, { phase: "answered", step: 1, ...model, code: "auth_failed", error: "x" }));
    emit(
      event("run.tool", 13, {
        phase: "result",
        toolCallId: "c",
        toolName: "t",
        isError: true,
        durationMs: 9,
      }),
    );
    emit(event("run.ended", 20, { state: "error", code: "auth_failed", error: "x" }));
    expect(one("chat gemini-3-pro").attributes["error.type"]).toBe("auth_failed");
    expect(one("execute_tool t").attributes["error.type"]).toBe("tool_error");
    expect(msOf(one("execute_tool t").startTime)).toBe(4);
    expect(one("invoke_agent main").attributes).toMatchObject({
      "error.type": "auth_failed",
      "skein.run.state": "error",
    });
  });

  test("cover a run that ends asleep, queued, merged or recovered", () => {
    const { emit, named, one } = watched();
    const asleep = eventsOf("a", { sessionKey: "agent:asleep:main" });
    emit(asleep("run.started", 0, began));
    emit(asleep("run.sleeping", 5, { waitingFor: ["x"], wakeAt: start }));
    emit(asleep("run.ended", 9, { state: "aborted", code: null, error: null }));
    expect(one("invoke_agent asleep").attributes["error.type"]).toBe("aborted");

    const queued = eventsOf("q", { sessionKey: "agent:queued:main" });
    emit(queued("run.queued", 0, { lane: "main", kind: "user" }));
    emit(queued("run.ended", 9, { state: "timeout", code: null, error: null }));
    expect(msOf(one("invoke_agent queued").startTime)).toBe(0);

    const [into, merged] = [eventsOf("i"), eventsOf("m")];
    emit(into("run.started", 0, began));
    emit(into("run.waiting", 0, { for: "approval" }));
    emit(into("run.resumed", 1, {}));
    emit(merged("run.queued", 1, { lane: "main", kind: "user" }));
    emit(merged("run.ended", 2, { state: "merged", code: null, error: null, mergedInto: "i" }));
    emit(into("run.ended", 3, ok));
    expect(named("invoke_agent main")).toHaveLength(1);
    expect(one("invoke_agent main").events.map((each) => each.name)).toEqual([
      "skein.waiting",
      "skein.resumed",
      "skein.merged",
    ]);

    const lost = eventsOf("l", { sessionKey: "agent:lost:main" });
    emit(lost("run.recovered", 0, { attempt: 2, action: "ask_again" }));
    emit(lost("run.started", 1, { attempt: 2, model: null }));
    emit(lost("run.step", 2, { phase: "asked", step: 1, provider: "p", model: "lost" }));
    emit(lost("run.recovered", 3, { attempt: 3, action: "ask_again" }));
    emit(lost("run.ended", 4, ok));
    expect(one("invoke_agent lost").attributes).toMatchObject({ "skein.run.recovered": true });
    expect(one("chat lost").attributes["skein.unfinished"]).toBe(true);
  });

  test("beyond the limit the oldest ends, and closing ends the rest", () => {
    const { emit, all, spans } = watched({ maxOpen: 2 });
    for (const id of ["1", "2", "3"]) {
      emit(eventsOf(id)("run.started", 0, began));
      emit(eventsOf(id)("run.tool", 1, { phase: "call", toolCallId: "c", toolName: "t" }));
    }
    expect(all().map((span) => [span.attributes["skein.run.id"], span.name])).toEqual([
      ["1", "execute_tool t"],
      ["1", "invoke_agent main"],
    ]);
    spans.close();
    expect(all()).toHaveLength(6);
    expect(all().every((span) => span.attributes["skein.unfinished"] === true)).toBe(true);
  });

  test("an unanswered request ends with the next one; no span ends before it started", () => {
    const { emit, named, one } = watched();
    const event = eventsOf("r1");
    const warnings: string[] = [];
    const quiet = () => undefined;
    const warn = (text: string) => void warnings.push(text);
    api.diag.setLogger({ warn, error: quiet, info: quiet, debug: quiet, verbose: quiet });
    emit(event("run.started", 50, began));
    emit(event("run.step", 60, { phase: "asked", step: 1, ...model }));
    emit(event("run.step", 70, { phase: "asked", step: 2, ...model }));
    emit(event("run.ended", 10, ok));
    api.diag.disable();
    const chats = named("chat gemini-3-pro").map((span) => [msOf(span.startTime), msOf(span.endTime)]);
    expect(chats).toEqual([
      [60, 70],
      [70, 70],
    ]);
    expect(msOf(one("invoke_agent main").endTime)).toBe(50);
    expect(warnings).toEqual([]);
  });

  test("for any order of events, every started span has ended after close", () => {
    const [id, at] = [fc.constantFrom("a", "b", "c"), fc.nat(1000)];
    const asked = { step: 1, ...model };
    const call = { toolCallId: "c", toolName: "t" };
    const kind = fc.constantFrom<(event: ReturnType<typeof eventsOf>, at: number) => unknown>(
      (event, at) => event("run.queued", at, { lane: "main", kind: "user", startedBy: "a" }),
      (event, at) => event("run.started", at, { ...began, startedBy: "b" }),
      (event, at) => event("run.step", at, { phase: "asked", ...asked }),
      (event, at) => event("run.step", at, { phase: "answered", ...asked }),
      (event, at) => event("run.retry", at, { attempt: 1, delayMs: 10, code: "x", error: "y" }),
      (event, at) => event("run.tool", at, { phase: "call", ...call }),
      (event, at) => event("run.tool", at, { phase: "result", ...call, durationMs: 2 }),
      (event, at) => event("run.recovered", at, { attempt: 1, action: "x" }),
      (event, at) => event("run.ended", at, { ...ok, mergedInto: "c" }),
    );
    const happenings = fc.array(fc.record({ id, at, kind }), { maxLength: 60, size: "max" });
    fc.assert(
      fc.property(happenings, (list) => {
        let open = 0;
        const provider = new BasicTracerProvider({
          spanProcessors: [
            {
              onStart: () => void open++,
              onEnd: () => void open--,
              forceFlush: async () => undefined,
              shutdown: async () => undefined,
            },
          ],
        });
        const problems: unknown[] = [];
        const bus = new EventBus((error) => problems.push(error));
        const spans = new SpanWatcher({
          api,
          tracer: provider.getTracer("test"),
          clock: { now: () => start },
          maxOpen: 2,
        });
        bus.subscribe(spans.onEvent);
        for (const each of list)
          bus.emit(each.kind(eventsOf(each.id), each.at) as Parameters<typeof bus.emit>[0]);
        spans.close();
        expect([open, problems]).toEqual([0, []]);
      }),
    );
  });
});
