import * as fc from "fast-check";
import { expect, test } from "vitest";
import { hashedId } from "./hashed-id.ts";

test("a derived ID has the shape of a UUID, and different parts give different IDs", () => {
  const parts = fc.array(fc.string(), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(parts, parts, (one, other) => {
      expect(hashedId(...one)).toMatch(/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
      expect(hashedId(...one) === hashedId(...other)).toBe(JSON.stringify(one) === JSON.stringify(other));
    }),
  );
});
