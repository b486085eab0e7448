import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { TwinApi } from "./contract.ts";
import { isRedactedThinking, redactThinking, signatures } from "./signatures.ts";

const apis: TwinApi[] = ["anthropic-messages", "google-generative-ai", "openai-responses"];
const { sign, verify } = signatures;

describe("signatures", () => {
  test("[TWN8] hold for the provider and model that thought, and are base64", () => {
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

  test("[TWN8] Anthropic's hold for one text, Google's for whatever goes with them", () => {
    const own = sign("anthropic-messages", "m", "thought");
    expect(verify("anthropic-messages", "m", "thought.", own)).toBe(false);
    const carried = sign("google-generative-ai", "m", "thought");
    expect(carried).not.toBe(sign("google-generative-ai", "m", "other"));
    expect(verify("google-generative-ai", "m", "", carried)).toBe(true);
  });

  test("[TWN8] none is forged by chance", () => {
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
