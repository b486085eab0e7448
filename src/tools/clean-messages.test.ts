import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRedactor } from "../access/redaction/redactor.ts";
import { stringifyJson } from "../core/json.ts";
import { capMessages, cleanMessage, isToolMessage } from "./clean-messages.ts";

const secret = "hunter2-hunter2-hunter2";
const masked = "hunter…ter2";
const redactor = createRedactor({ secrets: [secret] });
const clean = (message: Record<string, unknown>, includeTools = true) =>
  cleanMessage(message, { redactor, includeTools });
const mark = "\n…(truncated)…";

describe("a message in a tool result", () => {
  const call = (args: unknown) => ({ type: "toolCall", id: "c1", name: "read", arguments: args });
  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ["a content", { content: secret }, { content: masked }],
    ["a text", { content: [{ type: "text", text: secret }] }, { content: [{ type: "text", text: masked }] }],
    [
      "a thought",
      { content: [{ type: "thinking", thinking: secret }] },
      { content: [{ type: "thinking", thinking: masked }] },
    ],
    [
      "arguments, deep",
      { content: [call({ a: [{ b: secret }], usage: 1, data: "d" })] },
      { content: [call({ a: [{ b: masked }], usage: 1, data: "d" })] },
    ],
    [
      "an argument by its name",
      { content: [call({ password: "tiger" })] },
      { content: [call({ password: "***" })] },
    ],
    ["a name of an argument", { content: [call({ [secret]: 1 })] }, { content: [call({ [masked]: 1 })] }],
    [
      "half-written arguments",
      { content: [{ type: "toolCall", id: "c", name: "n", arguments: {}, partialJson: `{"a":"${secret}` }] },
      { content: [{ type: "toolCall", id: "c", name: "n", arguments: {}, partialJson: `{"a":"${masked}` }] },
    ],
    ["a command and its output", { command: secret, output: secret }, { command: masked, output: masked }],
    ["a summary", { summary: secret }, { summary: masked }],
    ["an error", { errorMessage: secret }, { errorMessage: masked }],
    ["an unknown field", { other: { deep: [secret] } }, { other: { deep: [masked] } }],
    [
      "an unknown block",
      { content: [{ type: "odd", content: [{ type: "odd", x: secret }] }] },
      { content: [{ type: "odd", content: [{ type: "odd", x: masked }] }] },
    ],
  ])("[RDT7] secrets are masked in %s", (_, message, shown) => {
    const cleaned = clean({ id: "e1", role: "x", timestamp: 1, ...message });
    expect(cleaned).toEqual({
      message: { id: "e1", role: "x", timestamp: 1, ...shown },
      truncated: false,
      redacted: true,
    });
  });

  test("[RDT7] usage, details, signatures and provider metadata are silently left out", () => {
    const block = {
      type: "thinking",
      thinking: "t",
      thinkingSignature: "s",
      skein: { providerMetadata: {} },
    };
    const message = {
      id: "e1",
      role: "assistant",
      content: [
        block,
        { type: "text", text: "a", textSignature: "s" },
        { ...call({}), thoughtSignature: "s", details: 1, usage: 1, cost: 1 },
        { type: "odd", signature: "s", encrypted_content: "x" },
      ],
      details: {},
      usage: {},
      cost: 1,
      skein: {},
      fullOutputPath: "/tmp/x",
      timestamp: 1,
    };
    expect(clean(message)).toEqual({
      message: {
        id: "e1",
        role: "assistant",
        content: [
          { type: "thinking", thinking: "t" },
          { type: "text", text: "a" },
          call({}),
          { type: "odd" },
        ],
        timestamp: 1,
      },
      truncated: false,
      redacted: false,
    });
  });

  test("[RDT7] keeps IDs, roles, types, times and provenance unchanged", () => {
    const key = `agent:main:user:${secret}`;
    const message = {
      id: secret,
      role: "toolResult",
      toolCallId: secret,
      timestamp: 5,
      provenance: { kind: "inter_session", sourceSessionKey: key, hops: 1, note: secret },
    };
    const { message: shown } = clean(message);
    expect(shown).toEqual({ ...message, provenance: { ...message.provenance, note: masked } });
  });

  test("[RDT7] a text is cut at 4,000 units after redaction, without splitting a surrogate pair", () => {
    expect(clean({ id: "e", content: "a".repeat(4000) }).truncated).toBe(false);
    const long = clean({ id: "e", content: "a".repeat(4001) });
    expect(long).toMatchObject({ message: { content: `${"a".repeat(4000)}${mark}` }, truncated: true });
    const pairs = clean({ id: "e", content: `a${"😀".repeat(3000)}` }).message.content as string;
    expect(pairs).toBe(`a${"😀".repeat(1999)}${mark}`);
    expect(pairs.isWellFormed()).toBe(true);
    const atTheCut = clean({ id: "e", content: `${"x ".repeat(1995)}${secret} and on ${"y ".repeat(50)}` });
    expect(stringifyJson(atTheCut.message)).not.toContain(secret.slice(0, 8));
    const deep = clean({ id: "e", content: [call({ list: [{ text: "b".repeat(9000) }] })] });
    expect(stringifyJson(deep.message).length).toBeLessThan(4200);
  });

  test("images are replaced by their size, everywhere", () => {
    const bytes = Buffer.alloc(1000, 7);
    const data = bytes.toString("base64");
    const image = { type: "image", data, mimeType: "image/png", skein: { filename: "a.png" } };
    const shown = { type: "image", mimeType: "image/png", omitted: true, bytes: 1000 };
    const blob = { sha256: "0".repeat(64), bytes: 70_000, mimeType: "image/jpeg", was: "image" };
    const inBlob = { type: "text", text: "[image …]", skein: { blob } };
    const source = { type: "base64", media_type: "image/png", data };
    const { message } = clean({
      id: "e",
      role: "toolResult",
      content: [image, inBlob, { type: "odd", content: [image] }, { type: "image", source }],
    });
    expect(message.content).toEqual([
      shown,
      { type: "image", mimeType: "image/jpeg", omitted: true, bytes: 70_000 },
      { type: "odd", content: [shown] },
      { type: "image", source: { type: "base64", media_type: "image/png", omitted: true, bytes: 1000 } },
    ]);
    expect(
      clean({ id: "e", content: [{ ...image, data: `${data.slice(0, 9)}\n${data.slice(9)}` }] }),
    ).toEqual(clean({ id: "e", content: [image] }));
  });

  test("[RDT7] without tools, calls are omitted, and an answer with only calls is a tool message", () => {
    const text = { type: "text", text: "I look." };
    expect(clean({ id: "e", role: "assistant", content: [text, call({})] }, false).message.content).toEqual([
      text,
    ]);
    const assistant = (...content: object[]) => ({ role: "assistant", content });
    const blank = { type: "thinking", thinking: " " };
    expect(isToolMessage(assistant(blank, call({})))).toBe(true);
    expect(isToolMessage({ role: "toolResult", content: [] })).toBe(true);
    for (const message of [
      assistant(text, call({})),
      assistant(),
      { role: "user", content: "x" },
      { ...assistant(call({})), errorMessage: "overloaded" },
    ])
      expect(isToolMessage(message)).toBe(false);
  });

  test("[RDT7] for any message, no secret and no endless text is returned", () => {
    const leaf = fc.oneof(
      fc.constantFrom(secret, `a ${secret} b`, "x".repeat(5000)),
      fc.integer(),
      fc.constant(null),
    );
    const name = fc.constantFrom(
      ...[
        "content",
        "text",
        "source",
        "data",
        "arguments",
        "provenance",
        "type",
        "__proto__",
        "details",
        secret,
      ],
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof({ maxDepth: 5 }, leaf, tie("list"), tie("object")),
      list: fc.array(tie("tree"), { maxLength: 4 }),
      object: fc.dictionary(name, tie("tree"), { maxKeys: 4 }),
    }));
    fc.assert(
      fc.property(fc.dictionary(name, tree), (fields) => {
        const { type: _type, ...others } = fields;
        const { message } = clean({ ...others, id: "e", role: "user" });
        const json = stringifyJson(message);
        // A type is shown unchanged because it is not user text.
        expect(json.replaceAll(/"type":"[^"]*"/g, "")).not.toContain(secret);
        expect(json).not.toContain("x".repeat(4001));
      }),
    );
  });

  test("[RDT7] limits the nesting depth", () => {
    let args: unknown = secret;
    for (let depth = 0; depth < 20_000; depth++) args = depth % 2 === 0 ? [args] : { a: args };
    const nested = clean({ id: "e", content: [call({ args })] });
    expect(nested.truncated).toBe(true);
    let blocks: unknown = [];
    for (let depth = 0; depth < 20_000; depth++) blocks = [{ type: "odd", content: blocks }];
    const odd = clean({ id: "e", content: blocks });
    expect(JSON.stringify([nested.message, odd.message]).length).toBeLessThan(10_000);
  });
});

const most = 80 * 1024;
const sizeOf = (messages: unknown) => Buffer.byteLength(JSON.stringify(messages));
const cleanText = (content: string) => ({ message: { content }, truncated: content === "", redacted: false });
const contents = (capped: { messages: readonly object[] }) =>
  capped.messages.map((message) => Reflect.get(message, "content"));
const standIn = { role: "assistant", content: "[sessions_history omitted: message too large]" };

describe("the hard cap", () => {
  test("counts bytes of UTF-8 JSON and keeps all messages that fit, from the requested end", () => {
    const text = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 40 }),
      fc.constantFrom("京".repeat(9000), "😀".repeat(5000), '"'.repeat(30_000), "x".repeat(90_000)),
    );
    fc.assert(
      fc.property(fc.array(text, { maxLength: 30 }), fc.boolean(), (texts, forward) => {
        const capped = capMessages(texts, cleanText, { forward });
        expect(capped.totalBytes).toBe(sizeOf(capped.messages));
        expect(capped.totalBytes).toBeLessThanOrEqual(most);
        expect(capped.hardCapped).toBe(capped.dropped > 0);
        const all = texts.map((content) => ({ content }));
        if (sizeOf(all) <= most) {
          expect(capped).toMatchObject({ messages: all, taken: texts, dropped: 0 });
          return;
        }
        const next = forward ? 1 : -1;
        if (capped.dropped === texts.length) {
          const taken = texts.at(forward ? 0 : -1);
          expect(capped).toMatchObject({ messages: [standIn], taken: [taken] });
          expect(sizeOf([{ content: taken }])).toBeGreaterThan(most);
          return;
        }
        const count = texts.length - capped.dropped;
        expect(contents(capped)).toEqual(forward ? texts.slice(0, count) : texts.slice(-count));
        const oneMore = next === 1 ? all.slice(0, count + 1) : all.slice(-count - 1);
        expect(sizeOf(oneMore)).toBeGreaterThan(most);
      }),
    );
  });

  test("is exact to the byte", () => {
    const frame = sizeOf([{ content: "" }]);
    const exact = "x".repeat(most - frame);
    expect(capMessages([exact], cleanText)).toMatchObject({ totalBytes: most, hardCapped: false });
    expect(capMessages([`${exact}x`], cleanText)).toMatchObject({ messages: [standIn], dropped: 1 });
  });

  test("omitted messages are neither reported nor cleaned", () => {
    let cleaned = 0;
    const counting = (content: string) => {
      cleaned += 1;
      return cleanText(content);
    };
    const big = "x".repeat(60_000);
    const texts = ["", ...Array.from({ length: 500 }, () => big)];
    expect(capMessages(texts, counting)).toMatchObject({ truncated: false, dropped: 500 });
    expect(cleaned).toBe(2);
  });
});
