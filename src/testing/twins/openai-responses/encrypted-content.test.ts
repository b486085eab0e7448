import fc from "fast-check";
import { expect, test } from "vitest";
import { isSealed, sealedItem, sealReasoning } from "./encrypted-content.ts";

test("[TWB26] what a model of the twin sealed opens for that model alone, as that item", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (model, other, id) => {
      const sealed = sealReasoning(model, id);
      expect(sealed).toMatch(/^gAAAA[A-Za-z0-9_-]+$/);
      expect(isSealed(model, sealed)).toBe(true);
      expect(Buffer.from(sealedItem(model, sealed) ?? "")).toEqual(Buffer.from(id));
      if (other !== model) expect(isSealed(other, sealed)).toBe(false);
    }),
  );
});

test("[TWB26] a seal with another character in it, or one less, does not open", () => {
  const sealed = sealReasoning("gpt-5", "rs_1");
  fc.assert(
    fc.property(fc.nat(sealed.length - 1), fc.constantFrom(..."AbZ09_-="), (at, character) => {
      const forged = `${sealed.slice(0, at)}${character}${sealed.slice(at + 1)}`;
      // The first bytes say only what it is.
      if (forged !== sealed && at > 6) expect(isSealed("gpt-5", forged)).toBe(false);
      expect(isSealed("gpt-5", sealed.slice(0, at))).toBe(false);
    }),
  );
});
