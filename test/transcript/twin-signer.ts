import { signatures } from "../../src/entry-testing.ts";
import { sealReasoning } from "../../src/testing/twins/signatures.ts";
import type { Signer } from "./conversation.ts";

/**
 * Signs like the providers' twins, which refuse anything else. Create one per conversation, because items are numbered.
 */
export function twinSigner(): Signer {
  let items = 0;
  return {
    thinking: ({ api, model }, thinking) => {
      if (api === "anthropic-messages" || api === "google-generative-ai") {
        return signatures.sign(api, model, thinking);
      }
      if (api !== "openai-responses") return undefined;
      const id = `rs_${(items++).toString().padStart(8, "0")}`;
      const summary = [{ type: "summary_text", text: thinking }];
      return JSON.stringify({ type: "reasoning", id, summary, encrypted_content: sealReasoning(model, id) });
    },
    part: ({ api, model }) =>
      api === "google-generative-ai" ? signatures.sign(api, model, "a part") : undefined,
  };
}
