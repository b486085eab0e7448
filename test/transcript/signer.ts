import type { Signer } from "./conversation.ts";

/** Signatures in the right form that are not verified. */
export const anySigner: Signer = {
  thinking: ({ api }, thinking) => {
    const sealed = Buffer.from(`sealed ${thinking}`).toString("base64");
    if (api === "openai-responses") {
      return JSON.stringify({ type: "reasoning", id: `rs_${thinking.length}`, encrypted_content: sealed });
    }
    return api === "anthropic-messages" || api === "google-generative-ai" ? sealed : undefined;
  },
  part: ({ api }) => (api === "google-generative-ai" ? Buffer.from("part").toString("base64") : undefined),
};
