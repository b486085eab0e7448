import fc from "fast-check";
import { expect, test } from "vitest";
import { deepestJson, Nesting } from "./nesting.ts";

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? 1 + Math.max(0, ...Object.values(value).map((each) => depthOf(each)))
    : 0;

test("[ATG7] any JSON is taken up to the depth that is taken, in any pieces", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 1, max: 40 }), (value, size) => {
      const wrapping = deepestJson - depthOf(value);
      for (const [more, isTaken] of [
        [0, true],
        [1, false],
      ] as const) {
        const depth = wrapping + more;
        const bytes = Buffer.from("[".repeat(depth) + JSON.stringify(value) + "]".repeat(depth));
        const nesting = new Nesting();
        let all = true;
        for (let at = 0; at < bytes.length && all; at += size)
          all = nesting.take(bytes.subarray(at, at + size));
        expect(all).toBe(isTaken);
      }
    }),
    { numRuns: 30 },
  );
});
