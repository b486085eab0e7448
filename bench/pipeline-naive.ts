import { EntryIds } from "../src/transcript/derive.ts";
import { normalizeContext } from "../src/transcript/steps/normalize-context.ts";
import { steps } from "../src/transcript/steps/prepare-transcript.ts";
import { policy, transcriptOf } from "./pipeline.ts";
import type { Acts } from "./side.ts";
import { timedOften } from "./side.ts";

/** The same steps in a naive chain. Each step gets its own copy, so no step can change another's input. */
export const acts: Acts = {
  prepare: async (job) => {
    const messages = transcriptOf(job);
    const record = new EntryIds().recorder("naive");
    const ms = await timedOften(3, async () => {
      let { messages: current } = normalizeContext(structuredClone(messages) as typeof messages, { record });
      for (const step of steps) {
        ({ messages: current } = await step(structuredClone(current) as typeof current, { policy, record }));
      }
      return current;
    });
    return { ms };
  },
};
