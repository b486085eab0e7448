import type { TwinApi } from "../../src/entry-testing.ts";

/** Models that support thinking, one for each wire format. */
export const providers = [
  { api: "anthropic-messages", provider: "anthropic", model: "claude-sonnet-4-5" },
  { api: "google-generative-ai", provider: "google", model: "gemini-2.5-flash" },
  { api: "openai-responses", provider: "openai", model: "gpt-5" },
  { api: "openai-completions", provider: "local", model: "qwen3" },
  { api: "mistral-conversations", provider: "mistral", model: "magistral-medium-2506" },
] as const satisfies readonly { api: TwinApi; provider: string; model: string }[];

export type TwinProvider = (typeof providers)[number];
