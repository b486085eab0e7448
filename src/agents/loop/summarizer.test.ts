import { expect, test } from "vitest";
import type { Scene } from "../../../test/support/scripted-model.ts";
import { finish, said, says, scriptedModel } from "../../../test/support/scripted-model.ts";
import type { Usage } from "../../core/messages.ts";
import { loopServices } from "./services.ts";
import { summarizerOf } from "./summarizer.ts";

/** Returns the usage reported while a summary was requested, and the summary or the error. */
async function summarize(scenes: readonly Scene[]) {
  const used: Usage[] = [];
  const options = {
    signal: new AbortController().signal,
    limits: { stallMs: 120_000, maxRetries: 1 },
    onUsage: (usage: Usage) => void used.push(usage),
  };
  const services = loopServices({ sleep: () => Promise.resolve() });
  const request = { system: "Summarize.", prompt: "Hello", maxTokens: 100 };
  const outcome = await summarizerOf(scriptedModel(scenes), options, services)(request).catch(String);
  return { used, outcome };
}

const failing: Scene = [...said("Half"), finish("error")];

test("the usage of a failed attempt is reported, whether or not another one follows", async () => {
  const retried = await summarize([failing, says("Whole.")]);
  expect(retried.outcome).toBe("Whole.");
  expect(retried.used).toHaveLength(2);
  const failed = await summarize([failing, failing]);
  expect(failed.outcome).toMatch(/^Error/);
  expect(failed.used).toHaveLength(2);
});
