import { join } from "node:path";
import { expect, test } from "vitest";
import { prepareTranscript } from "../../src/transcript/pipeline/prepare.ts";
import { resolveTranscriptPolicy } from "../../src/transcript/policy.ts";
import { cases } from "./cases.ts";
import { lines, prepared } from "./notation.ts";

const folder = join(import.meta.dirname, "../golden/transcript");
const models = [
  ["anthropic", "claude-sonnet-4-5"],
  ["google", "gemini-2.5-pro"],
  ["openai", "gpt-5"],
  ["local", "qwen3"],
  ["mistral", "mistral-large-latest"],
] as const;

test.each(cases)("[$rule] $title", async ({ rule, title, messages, options }) => {
  const entryIds = messages.map((_, index) => `e${index + 1}`);
  const byResult = new Map<string, string[]>();
  for (const [provider, model] of models) {
    const policy = resolveTranscriptPolicy({ provider, model });
    const text = prepared(await prepareTranscript(messages, policy, { ...options, entryIds }));
    byResult.set(text, [...(byResult.get(text) ?? []), `${provider}/${model}`]);
  }
  const sent = [...byResult].map(([text, names]) => `to ${names.join(", ")}\n${text}\n`);
  const page = `${rule} ${title}\n\nin the session\n${lines(messages, entryIds)}\n\n${sent.join("\n")}`;
  await expect(page).toMatchFileSnapshot(join(folder, `${rule.toLowerCase()}.txt`));
});
