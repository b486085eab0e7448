import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { capMessages } from "./cap-messages.ts";

const most = 80 * 1024;
const sizeOf = (messages: unknown) => Buffer.byteLength(JSON.stringify(messages));
const clean = (content: string) => ({ message: { content }, truncated: content === "", redacted: false });
const contents = (capped: { messages: readonly object[] }) =>
  capped.messages.map((message) => Reflect.get(message, "content"));
const standIn = { role: "assistant", content: "[sessions_history omitted: message too large]" };

describe("the hard cap", () => {
  test("[RDT9] counts bytes of UTF-8 JSON and keeps all that fit, from the end that was asked for", () => {
    const text = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 40 }),
      fc.constantFrom("京".repeat(9000), "😀".repeat(5000), '"'.repeat(30_000), "x".repeat(90_000)),
    );
    fc.assert(
      fc.property(fc.array(text, { maxLength: 30 }), fc.boolean(), (texts, forward) => {
        const capped = capMessages(texts, clean, { forward });
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

  test("[RDT9] to the byte", () => {
    const frame = sizeOf([{ content: "" }]);
    const exact = "x".repeat(most - frame);
    expect(capMessages([exact], clean)).toMatchObject({ totalBytes: most, hardCapped: false });
    expect(capMessages([`${exact}x`], clean)).toMatchObject({ messages: [standIn], dropped: 1 });
  });

  test("[RDT9] of what is not shown nothing is said and nothing cleaned", () => {
    let cleaned = 0;
    const counting = (content: string) => {
      cleaned += 1;
      return clean(content);
    };
    const big = "x".repeat(60_000);
    const texts = ["", ...Array.from({ length: 500 }, () => big)];
    expect(capMessages(texts, counting)).toMatchObject({ truncated: false, dropped: 500 });
    expect(cleaned).toBe(2);
  });
});
