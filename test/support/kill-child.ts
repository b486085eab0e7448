// A process for the kill suite. Runs the scenario's turn and is killed at a durable write, or counts the writes to the
// end. Usage: `kill-child.ts <folder> <url> [<point>]`
import { writeSync } from "node:fs";
import { KillPoints } from "./kill-points.ts";
import { openScenario, theTurn } from "./kill-scenario.ts";
import { watchDisk, watchWork } from "./watch-acts.ts";

const [folder = "", url = "", point] = process.argv.slice(2);
const points = new KillPoints(point === undefined ? null : Number(point));
watchDisk(points);
watchWork(points);
const skein = await openScenario(folder, url, points);
points.begin();
await theTurn(skein);
await skein.close({ graceMs: 0 });
writeSync(1, `${JSON.stringify(points.names)}\n`);
