import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

const million = 1_000_000;
const cases = [
  { name: "1 MB mixed", kind: "mixed", size: million },
  { name: "10 MB mixed", kind: "mixed", size: 10 * million },
  { name: "1 MB hostile", kind: "hostile", size: million },
  { name: "10 MB hostile", kind: "hostile", size: 10 * million },
];

export const row: Row = {
  name: "redaction",
  title: "Redact text",
  measure: (shop) =>
    inTurn(cases, ({ name, kind, size }) => {
      const count = shop.size(size);
      const job = (folder: string) => ({ folder, kind, count });
      const jobs = kind === "hostile" ? { redaction: job } : { redaction: job, regexes: job };
      return shop.measure({ name, size: count, act: "redact", runs: shop.runs(3), jobs });
    }),
};
