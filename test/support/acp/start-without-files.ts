import { closeSync, openSync } from "node:fs";
import { startChild } from "../../../src/acp/client/start-agent.ts";

/** Opens files until no more can be opened, starts a process in the given folder, and reports the result. */
const folder = process.argv[2] ?? "";
const spec = { name: "toy", command: "/bin/true", args: [], env: {}, cwd: folder };
const start = () => startChild(spec, { PATH: "/usr/bin:/bin" });
// Loads all lazy modules first.
await (await start()).stop();
const held: number[] = [];
const fill = () => {
  try {
    for (;;) held.push(openSync("/dev/null", "r"));
  } catch {
    return; // no more files can be opened
  }
};
fill();
const told = await start().then(
  () => "started",
  (error: { code?: unknown; message?: unknown }) => `${error.code} ${error.message}`,
);
for (const file of held) closeSync(file);
process.stdout.write(told);
