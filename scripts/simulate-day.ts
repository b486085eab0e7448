// npm run simulate: replays a day with a million sessions in a simulation, with the service times that npm run bench has
// measured. Prints the tables of docs/scale.md; --save writes them there. --whole replays 24 hours instead of one.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readServiceTimes } from "./simulation/assumptions.ts";
import { renderScale, replayLoads, replayMs, withGenerated } from "./simulation/scale-page.ts";
import { root } from "./steps.ts";

const { values } = parseArgs({
  options: { save: { type: "boolean", default: false }, whole: { type: "boolean", default: false } },
});
if (values.save && values.whole) {
  console.error("docs/scale.md contains the day of one hour; pass only one of --save and --whole");
  process.exit(2);
}

const times = readServiceTimes();
const generated = renderScale(times, replayLoads(times, values.whole ? 86_400_000 : replayMs));
console.log(generated);
if (values.save) {
  const path = join(root, "docs/scale.md");
  writeFileSync(path, withGenerated(readFileSync(path, "utf8"), generated));
  console.log("\nwritten: docs/scale.md");
}
