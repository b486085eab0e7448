// A process for the tests in which two processes share a folder and its agents. Works until it is killed or asked to
// stop. Usage: `acp-kill-partner.ts <folder>`
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { openWorld } from "./acp-kill-world.ts";

const [folder = ""] = process.argv.slice(2);
const skein = await openWorld(folder);
// A killed process does not save its compile cache, so the next one would compile everything again.
flushCompileCache();
writeSync(1, "working\n");
for await (const _ of process.stdin); // until it ends
await skein.close({ graceMs: 0 });
