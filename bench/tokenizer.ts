import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { Acts } from "./side.ts";
import { longText, samplesOf, speedOf } from "./tokens.ts";

/** A real tokenizer, which shows the cost of an exact count. */
export const acts: Acts = {
  estimate: async (job) => ({
    mbPerSecond: await speedOf(longText(samplesOf(job), job.count ?? 1), (text) => countTokens(text)),
  }),
};
