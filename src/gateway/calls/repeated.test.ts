import { describe, expect, test } from "vitest";
import { payloadText, Repeated } from "./repeated.ts";

describe("payloads that are answered with again", () => {
  test("[GBN1] is found once for as long as the mark stays, and anew when it has changed", async () => {
    const lists = new Repeated<{ readonly found: number }>(2);
    let found = 0;
    const get = (name: string, mark: string) => lists.get(name, mark, async () => ({ found: ++found }));
    const first = await get("a", "1");
    expect(await get("a", "1")).toBe(first);
    expect(await get("a", "2")).toEqual({ found: 2 });
    expect(await get("b", "2")).toEqual({ found: 3 });
    expect(await get("c", "2")).toEqual({ found: 4 });
    // Of the oldest nothing is remembered.
    expect(await get("a", "2")).toEqual({ found: 5 });
  });

  test("[GBN1] the text of one that repeats is made once, of any other each time", async () => {
    let made = 0;
    const payload = { toJSON: () => ({ made: ++made }) };
    expect([payloadText(payload), payloadText(payload)]).toEqual(['{"made":1}', '{"made":2}']);
    const kept = await new Repeated<object>(1).get("a", "1", async () => payload);
    expect([payloadText(kept), payloadText(kept)]).toEqual(['{"made":3}', '{"made":3}']);
    expect(payloadText(undefined)).toBe("null");
  });
});
