import type { Row } from "./row.ts";

export const row: Row = {
  name: "import",
  title: 'import "skein"',
  measure: (shop) =>
    shop.measure({
      name: "entry",
      size: 1,
      act: "import",
      runs: shop.runs(15),
      jobs: { entry: (folder) => ({ folder }) },
    }),
};
