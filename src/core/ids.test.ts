import fc from "fast-check";
import { expect, test } from "vitest";
import { createIdSource } from "./ids.ts";

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("IDs are UUIDv7 and always increase, whatever the clock does", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -5000, max: 5000 }), { minLength: 1, maxLength: 50 }), (steps) => {
      let time = Date.UTC(2026, 0, 1);
      const newId = createIdSource({ now: () => time });
      let last = "";
      for (const step of steps) {
        time += step;
        const id = newId();
        expect(id).toMatch(uuidV7);
        expect(id > last).toBe(true);
        last = id;
      }
    }),
  );
});

test("with a stopped clock, the counter overflows into the next millisecond", () => {
  const newId = createIdSource({ now: () => 1_000_000 });
  const ids = Array.from({ length: 10_000 }, newId);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
});

test("an ID contains its time", () => {
  const time = Date.UTC(2026, 10, 15);
  const id = createIdSource({ now: () => time })();
  expect(Number.parseInt(id.replace("-", "").slice(0, 12), 16)).toBe(time);
});
