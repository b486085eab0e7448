import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test, vi } from "vitest";
import { call, finish, said, says } from "../../../test/support/scripted-model.ts";
import { PartCollector, readAnswer } from "./read-answer.ts";

/** A stream that the test feeds manually and a clock that the test advances. */
function begin() {
  let controller: ReadableStreamDefaultController<LanguageModelV4StreamPart> | undefined;
  const cancelled = vi.fn();
  const stream = new ReadableStream<LanguageModelV4StreamPart>({
    start: (each) => {
      controller = each;
    },
    cancel: cancelled,
  });
  let now = 0;
  const sleeps: { ms: number; wake: () => void; signal: AbortSignal }[] = [];
  const services = {
    clock: { now: () => now },
    random: () => 0,
    redact: (text: string) => text,
    sleep: (ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        sleeps.push({ ms, wake: resolve, signal });
      }),
  };
  const stop = new AbortController();
  const collector = new PartCollector();
  const model = { doStream: async () => ({ stream }) } as unknown as LanguageModelV4;
  const options = { signal: stop.signal, stallMs: 100, onDelta: () => undefined };
  const facts = readAnswer(model, { prompt: [] }, collector, options, services);
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    facts,
    stop,
    collector,
    cancelled,
    sleeps,
    feed: async (...parts: LanguageModelV4StreamPart[]) => {
      for (const part of parts) controller?.enqueue(part);
      await settle();
    },
    end: () => controller?.close(),
    pass: async (ms: number) => {
      now += ms;
      sleeps.at(-1)?.wake();
      await settle();
    },
  };
}

describe("reading a streamed answer", () => {
  test("[LOP8] a stream with occasional parts is not silent; a silent one is released", async () => {
    const it = begin();
    it.facts.catch(() => undefined);
    await it.feed(...said("One", "1"));
    await it.pass(60);
    await it.feed(...said("Two", "2"));
    await it.pass(60);
    await it.feed(...said("Three", "3"));
    expect(it.collector.texts).toEqual(["One", "Two", "Three"]);
    await it.pass(99);
    expect(it.cancelled).not.toHaveBeenCalled();
    await it.pass(1);
    await expect(it.facts).rejects.toMatchObject({ code: "stalled" });
    expect(it.cancelled).toHaveBeenCalledOnce();
    expect(it.sleeps.map(({ ms }) => ms)).toEqual([100, 40, 40, 1]);
  });

  test("[LIB11] a stream that always has more ready blocks neither timers nor an abort", async () => {
    const stop = new AbortController();
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      pull: (controller) => controller.enqueue({ type: "text-delta", id: "1", delta: "" }),
    });
    const model = { doStream: async () => ({ stream }) } as unknown as LanguageModelV4;
    const options = { signal: stop.signal, stallMs: 10_000, onDelta: () => undefined };
    const services = {
      clock: { now: () => 0 },
      random: () => 0,
      redact: (text: string) => text,
      sleep: () => new Promise<void>(() => undefined),
    };
    setTimeout(() => stop.abort(new Error("enough")), 10);
    const facts = readAnswer(model, { prompt: [] }, new PartCollector(), options, services);
    await expect(facts).rejects.toThrow("enough");
  });

  test("[LIB11] leaves no timer and no listener behind, and releases the stream on an abort", async () => {
    const it = begin();
    const removed = vi.spyOn(it.stop.signal, "removeEventListener");
    await it.feed(...says("Done."));
    it.end();
    await expect(it.facts).resolves.toMatchObject({ finishReason: { unified: "stop" } });
    expect(removed).toHaveBeenCalledOnce();
    expect(it.sleeps.map(({ signal }) => signal.aborted)).toEqual([true]);
    const aborted = begin();
    await aborted.feed(...said("Half"));
    aborted.stop.abort(new Error("enough"));
    await expect(aborted.facts).rejects.toThrow("enough");
    expect(aborted.cancelled).toHaveBeenCalledOnce();
  });

  test("an error part ends the answer, whatever follows", async () => {
    const it = begin();
    it.facts.catch(() => undefined);
    await it.feed({ type: "error", error: new Error("Boom") }, ...said("more"), finish());
    await expect(it.facts).rejects.toThrow("Boom");
    expect(it.collector.texts).toEqual([]);
  });
});

function collect(...parts: LanguageModelV4StreamPart[]) {
  const collector = new PartCollector();
  const deltas = parts.map((part) => collector.add(part));
  return { collector, deltas: deltas.filter((delta) => delta !== null) };
}

describe("stream parts", () => {
  test("texts, thoughts and calls keep the order in which they began", () => {
    const { collector, deltas } = collect(
      { type: "stream-start", warnings: [] },
      { type: "reasoning-start", id: "0" },
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: "Hel" },
      { type: "reasoning-delta", id: "0", delta: "Hm" },
      { type: "text-delta", id: "0", delta: "lo" },
      { type: "text-end", id: "0" },
      call("a", "read"),
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: "there" },
      finish(),
    );
    expect(collector.content).toMatchObject([
      { type: "reasoning", text: "Hm" },
      { type: "text", text: "Hello" },
      { type: "tool-call", toolCallId: "a" },
      { type: "text", text: "there" },
    ]);
    expect(collector.texts).toEqual(["Hello", "there"]);
    expect(deltas).toEqual([
      { kind: "text", delta: "Hel" },
      { kind: "thinking", delta: "Hm" },
      { kind: "text", delta: "lo" },
      { kind: "text", delta: "there" },
    ]);
  });

  test("keeps citations, and signatures that arrive with a later part or at the end", () => {
    const citation = { type: "source" } as never;
    const { collector, deltas } = collect(
      { type: "reasoning-start", id: "0", providerMetadata: { openai: { itemId: "rs_1" } } },
      { type: "reasoning-delta", id: "0", delta: "", providerMetadata: { anthropic: { signature: "abc" } } },
      { type: "reasoning-end", id: "0", providerMetadata: { openai: { sealed: "x" } } },
      { type: "text-delta", id: "1", delta: "begun by its first piece" },
      { type: "text-end", id: "1", citations: [citation] },
      { type: "text-end", id: "nobody" },
      { type: "text-delta", id: "1", delta: "behind its end" },
    );
    expect(collector.content).toEqual([
      {
        type: "reasoning",
        text: "",
        providerMetadata: { openai: { itemId: "rs_1", sealed: "x" }, anthropic: { signature: "abc" } },
      },
      { type: "text", text: "begun by its first piece", citations: [citation] },
      { type: "text", text: "behind its end" },
    ]);
    expect(deltas).toEqual([
      { kind: "text", delta: "begun by its first piece" },
      { kind: "text", delta: "behind its end" },
    ]);
  });

  test("keeps sources, files and provider-executed tools, and ignores unknown parts", () => {
    const source = { type: "source", sourceType: "url", id: "s", url: "https://example.org" } as const;
    const { collector } = collect(
      source,
      { type: "custom", kind: "anthropic.message_start" },
      { type: "custom", kind: "openai.compaction" },
      { type: "raw", rawValue: 1 },
      { type: "ping" },
      { type: "of-tomorrow" } as never,
      { type: "response-metadata", id: "r1" },
      { type: "response-metadata", modelId: "m" },
      finish("stop", "end_turn"),
    );
    expect(collector.content).toEqual([source, { type: "custom", kind: "openai.compaction" }]);
    expect(collector.facts).toMatchObject({
      finishReason: { unified: "stop", raw: "end_turn" },
      response: { id: "r1", modelId: "m" },
    });
    expect(new PartCollector().facts).toBeNull();
  });
});
