import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { TwinApi } from "./contract.ts";
import {
  isRedactedThinking,
  openReasoning,
  redactThinking,
  sealReasoning,
  signatures,
} from "./signatures.ts";

describe("signatures", () => {
  const apis: TwinApi[] = ["anthropic-messages", "google-generative-ai", "openai-responses"];
  const { sign, verify } = signatures;

  describe("signatures", () => {
    test("are valid only for the provider and model that thought, and are base64", () => {
      fc.assert(
        fc.property(fc.string(), fc.string({ minLength: 1 }), (thought, model) => {
          for (const api of apis) {
            const signature = sign(api, model, thought);
            expect(signature).toMatch(/^[A-Za-z0-9+/]{40,}={0,2}$/);
            expect(verify(api, model, thought, signature)).toBe(true);
            expect(verify(api, `${model}x`, thought, signature)).toBe(false);
            for (const other of apis)
              if (other !== api) expect(verify(other, model, thought, signature)).toBe(false);
          }
        }),
      );
    });

    test("Anthropic's are valid for one text, Google's for any content", () => {
      const own = sign("anthropic-messages", "m", "thought");
      expect(verify("anthropic-messages", "m", "thought.", own)).toBe(false);
      const carried = sign("google-generative-ai", "m", "thought");
      expect(carried).not.toBe(sign("google-generative-ai", "m", "other"));
      expect(verify("google-generative-ai", "m", "", carried)).toBe(true);
    });

    test("cannot be forged by chance", () => {
      fc.assert(
        fc.property(fc.base64String(), (text) => {
          for (const api of apis) expect(verify(api, "m", "thought", text)).toBe(false);
          expect(isRedactedThinking("m", text)).toBe(false);
        }),
      );
      expect(isRedactedThinking("m", redactThinking("m", "secret"))).toBe(true);
      expect(isRedactedThinking("n", redactThinking("m", "secret"))).toBe(false);
      expect(isRedactedThinking("m", sign("google-generative-ai", "m", "secret"))).toBe(false);
    });
  });
});

describe("encrypted content", () => {
  test("content encrypted by a twin's model can be decrypted only for that model, as that item", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (model, other, id) => {
        const sealed = sealReasoning(model, id);
        expect(sealed).toMatch(/^gAAAA[A-Za-z0-9_-]+$/);
        expect(openReasoning(model, sealed)).not.toBeNull();
        expect(Buffer.from(openReasoning(model, sealed) ?? "")).toEqual(Buffer.from(id));
        if (other !== model) expect(openReasoning(other, sealed)).toBeNull();
      }),
    );
  });

  test("encrypted content with a changed or missing character cannot be decrypted", () => {
    const sealed = sealReasoning("gpt-5", "rs_1");
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.constantFrom(..."AbZ09_-="), (at, character) => {
        const forged = `${sealed.slice(0, at)}${character}${sealed.slice(at + 1)}`;
        // The first bytes only identify the type.
        if (forged !== sealed && at > 6) expect(openReasoning("gpt-5", forged)).toBeNull();
        expect(openReasoning("gpt-5", sealed.slice(0, at))).toBeNull();
      }),
    );
  });
});
