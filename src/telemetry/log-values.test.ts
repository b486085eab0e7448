import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { loggable, maskerOf } from "./log-values.ts";

const plain = { redact: (text: string) => text, withStacks: false };

describe("values for a log", () => {
  test("[OBS14] deep, wide and circular ones are cut", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const deep = JSON.stringify(loggable(circle, plain));
    expect(deep).toBe(`${'{"self":'.repeat(6)}"…"${"}".repeat(6)}`);
    const wide = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`k${index}`, index]));
    expect(Object.keys(loggable(wide, plain) as object)).toHaveLength(100);
    expect(loggable(new Array(500).fill(1), plain)).toHaveLength(100);
  });

  test("[OBS13] [OBS14] whatever the value is, it can be written, and no secret is in it", () => {
    const secret = "s3cr3t";
    const text = fc.oneof(
      fc.string(),
      fc.constant(secret),
      fc.string().map((each) => each + secret + each),
    );
    const value = fc.anything({
      key: text,
      values: [text, fc.bigInt(), fc.double()],
      withNullPrototype: true,
    });
    fc.assert(
      fc.property(value, (each) => {
        const shown = JSON.stringify(loggable(each, { redact: maskerOf([secret]), withStacks: true })) ?? "";
        expect(shown).not.toContain(secret);
      }),
    );
  });
});
