// A process for the signal tests. Exits like the command line and holds a file's lock until then.
import { writeSync } from "node:fs";
import { exitOnSignals } from "../../src/cli/main.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createIdSource } from "../../src/core/ids.ts";
import { realDisk } from "../../src/store/files/disk.ts";
import { WriteLock } from "../../src/store/files/write-lock.ts";

const [path = ""] = process.argv.slice(2);
exitOnSignals();
const lock = new WriteLock(path, {
  disk: realDisk,
  clock: systemClock,
  timeoutMs: 0,
  newToken: createIdSource(),
  exclusively: (act) => act(),
  sleep: () => Promise.resolve(),
});
await lock.acquire();
setInterval(() => undefined, 60_000);
writeSync(1, "held\n");
