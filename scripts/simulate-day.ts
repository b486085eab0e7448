// npm run simulate: replays a day with a million sessions in a simulation, with the service times that npm run bench has
// measured, and prints the tables of docs/scale.md. --whole replays 24 hours instead of one.
import { parseArgs } from "node:util";
import { readServiceTimes } from "./simulation/assumptions.ts";
import { renderScale, replayLoads, replayMs } from "./simulation/scale-page.ts";

const { values } = parseArgs({ options: { whole: { type: "boolean", default: false } } });
const times = readServiceTimes();
console.log(renderScale(times, replayLoads(times, values.whole ? 86_400_000 : replayMs)));
