// A process for the suites that kill families. Continues a family until it has ended or until it is killed at a durable
// write. Usage: `family-child.ts <folder> <size> [<point>]`
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import type { FamilySize } from "./family-scenario.ts";
import { openFamily, runFamily } from "./family-scenario.ts";
import { KillPoints } from "./kill-points.ts";
import { watchDisk, watchWork } from "./watch-acts.ts";

const [folder = "", size = "all", point] = process.argv.slice(2);
const points = new KillPoints(point === undefined ? null : Number(point));
watchDisk(points);
watchWork(points);
const skein = await openFamily(folder, size as FamilySize);
// A killed process does not save its compile cache, so the next one would compile everything again.
flushCompileCache();
points.begin();
await runFamily(skein);
await skein.close({ graceMs: 0 });
writeSync(1, `${JSON.stringify(points.names)}\n`);
