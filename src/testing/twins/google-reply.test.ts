import { describe, expect, test } from "vitest";
import { generateRequest } from "../../../test/support/twins.ts";
import { wireFormats } from "../server/check-request.ts";
import type { ScriptedReply } from "./contract.ts";
import { signatures } from "./signatures.ts";

const google = wireFormats["google-generative-ai"];

const model = "gemini-3-pro-preview";
let count = 0;
const newId = () => {
  count += 1;
  return `Id${count}`.padEnd(24, "x");
};
const streamed = {
  ...generateRequest({}, model),
  path: `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
};

interface Chunk {
  candidates: { content: { role: string; parts: Record<string, unknown>[] }; finishReason?: string }[];
  usageMetadata: Record<string, unknown>;
}

function chunks(reply: ScriptedReply): Chunk[] {
  return google.events(reply, streamed, newId).map((event) => {
    expect(event).toMatch(/^data: .*\r\n\r\n$/);
    return JSON.parse(event.slice("data: ".length));
  });
}

const parts = (all: Chunk[]) =>
  all.flatMap(({ candidates }) => candidates.flatMap(({ content }) => content.parts));

describe("stream chunks", () => {
  const thinking = "The gardens first, then the food.";
  const calls: ScriptedReply = {
    content: [
      { type: "thinking", thinking },
      { type: "text", text: "I will look into both." },
      { type: "toolCall", name: "find", arguments: { what: "gardens" } },
      { type: "toolCall", name: "find", arguments: { what: "food" }, id: "mine" },
    ],
    usage: { input: 100, cacheRead: 20, output: 50, reasoning: 10 },
  };

  test("[TWA10] thoughts and texts arrive in pieces, and only the first call is signed", () => {
    const all = chunks(calls);
    const joined = (isThought: boolean) =>
      parts(all).filter((part) => typeof part.text === "string" && (part.thought === true) === isThought);
    expect(joined(true).length).toBeGreaterThan(1);
    expect(
      joined(true)
        .map((part) => part.text)
        .join(""),
    ).toBe(thinking);
    expect(joined(false).length).toBeGreaterThan(1);
    expect(
      joined(false)
        .map((part) => part.text)
        .join(""),
    ).toBe("I will look into both.");
    const [first, second] = parts(all).filter((part) => part.functionCall !== undefined);
    expect(first?.functionCall).toMatchObject({ name: "find", args: { what: "gardens" } });
    expect(signatures.verify("google-generative-ai", model, "", String(first?.thoughtSignature))).toBe(true);
    expect(second).toEqual({ functionCall: { name: "find", args: { what: "food" }, id: "mine" } });
  });

  test("[TWA10] only the last chunk has a finish reason; all have the usage", () => {
    const all = chunks(calls);
    const reasons = all.map(({ candidates }) => candidates[0]?.finishReason);
    expect(reasons.pop()).toBe("STOP");
    expect(new Set(reasons)).toEqual(new Set([undefined]));
    for (const { usageMetadata } of all) {
      expect(usageMetadata).toMatchObject({
        promptTokenCount: 120,
        cachedContentTokenCount: 20,
        candidatesTokenCount: 40,
        thoughtsTokenCount: 10,
        totalTokenCount: 170,
      });
    }
  });

  test("[TWA10] the signature of a text comes alone at the end; older models sign only after thinking", () => {
    const text: ScriptedReply = { content: [{ type: "text", text: "Kyoto." }], stopReason: "length" };
    const last = chunks(text).at(-1)?.candidates[0];
    expect(last?.content.parts).toEqual([{ text: "", thoughtSignature: expect.any(String) }]);
    expect(last?.finishReason).toBe("MAX_TOKENS");
    const path = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
    expect(google.events(text, { ...streamed, path }, newId).join("")).not.toContain("thoughtSignature");
    expect(google.events(calls, { ...streamed, path }, newId).join("")).toContain("thoughtSignature");
  });

  test("[TWA10] without a stream the parts are complete; a stream without events is a list of chunks", () => {
    const reply: ScriptedReply = { content: [{ type: "text", text: "Kyoto." }] };
    const request = generateRequest();
    expect(google.streams(request)).toBe(false);
    expect(google.answer(reply, request, newId)).toMatchObject({
      candidates: [
        { content: { role: "model", parts: [{ text: "Kyoto." }] }, finishReason: "STOP", index: 0 },
      ],
      usageMetadata: { candidatesTokenCount: 2 },
      modelVersion: "gemini-2.5-flash",
    });
    const bare = { ...streamed, path: streamed.path.replace("?alt=sse", "") };
    expect(google.streams(bare)).toBe(false);
    expect(google.answer(reply, bare, newId)).toHaveLength(3);
  });

  test("[TWA10] an empty reply is one chunk", () => {
    expect(chunks({ content: [] })).toHaveLength(1);
  });
});
