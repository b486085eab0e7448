// A process for the tests of two on one folder with the same agents: works until it is killed, or told to stop.
// acp-kill-partner.ts <folder>
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { openWorld } from "./acp-kill-world.ts";

const [folder = ""] = process.argv.slice(2);
const skein = await openWorld(folder);
// Who is killed has not said at its end what it compiled, and the next one would compile it anew.
flushCompileCache();
writeSync(1, "working\n");
for await (const _ of process.stdin); // until it ends
await skein.close({ graceMs: 0 });
