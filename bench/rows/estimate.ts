import { fileURLToPath } from "node:url";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

const folder = fileURLToPath(new URL("../../test/golden/tokens/", import.meta.url));
const kinds =
  "english chinese traditional japanese korean russian typescript python json base64 hex markdown mixed arabic hebrew thai hindi vietnamese german french spanish".split(
    " ",
  );
const characters = 1_000_000;

export const row: Row = {
  name: "estimate",
  title: "Estimate the number of tokens in a text",
  measure: (shop) =>
    inTurn([undefined, ...kinds], (kind) => {
      const job = { folder, count: shop.size(characters), ...(kind === undefined ? {} : { kind }) };
      return shop.measure({
        name: kind ?? "all samples",
        size: job.count,
        act: "estimate",
        runs: shop.runs(3),
        jobs: { tokens: () => job, tokenizer: () => job },
      });
    }),
};
