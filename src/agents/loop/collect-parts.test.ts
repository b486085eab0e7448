import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { call, finish } from "../../../test/support/scripted-model.ts";
import { PartCollector } from "./collect-parts.ts";

function collect(...parts: LanguageModelV4StreamPart[]) {
  const collector = new PartCollector();
  const deltas = parts.map((part) => collector.add(part));
  return { collector, deltas: deltas.filter((delta) => delta !== null) };
}

describe("the parts of a stream", () => {
  test("[LOP15] texts, thoughts and calls stand in the order in which they began", () => {
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

  test("[LOP15] signatures that come with a later piece or with the end are kept, and citations", () => {
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

  test("[LOP15] sources, files and what a provider did itself are kept; what nobody knows says nothing", () => {
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
