import { readRecallQuestions, recallFolder } from "../../test/support/recall-set.ts";
import type { Row } from "./row.ts";

export const row: Row = {
  name: "recall",
  title: "Questions in whole sentences: the share of the evidence among the first 10 hits",
  measure: (shop) =>
    shop.measure({
      name: "589 questions",
      size: readRecallQuestions().length,
      act: "recall",
      runs: 1,
      jobs: {
        full: (folder) => ({ folder, file: recallFolder }),
        postgres: async (folder) => ({ folder, file: recallFolder, url: await shop.database() }),
        plainSearch: (folder) => ({ folder, file: recallFolder }),
      },
    }),
};
