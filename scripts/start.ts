// npm start: makes a sample family of sessions in ./.skein where there is none, and opens the gateway on it.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { exitOnSignals, runCli } from "../src/cli/main.ts";
import { processTerminal } from "../src/cli/output/terminal.ts";
import { makeFamily } from "../src/cli/sample/make-family.ts";
import { configNames } from "../src/config/find-file.ts";
import { root } from "./steps.ts";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const terminal = { ...processTerminal(), cwd: root, command: "npm run -s skein --" };
const dir = join(root, ".skein");
exitOnSignals();

console.log(`Skein ${version}\n`);
const made = await makeFamily(dir, { say: (line) => console.log(line) });
console.log(
  made === "made"
    ? "\nThis sample family of sessions was made by the rehearsal model: offline, and free. It is in .skein."
    : "A family of sessions is in .skein already; take that folder away for a new one.",
);
console.log(`
Type next, in another terminal:
  npm run -s skein -- sessions ls --dir .skein
      the sessions
  npm run -s skein -- chat --dir .skein
      talk with the main session; "what can you do" tells what it understands
  npm run -s skein -- spawn describe the gardens of Porto --dir .skein
      give a helper a task
  npm run -s skein -- sessions tree main --dir .skein
      read a conversation with all its branches
  npm run -s skein -- context main --dir .skein
      what a model would be sent
  npm run -s skein -- --help
      everything else
  npm test
      prove it all
`);
// Its own configuration, not one that lies further up: that may name a model that costs something.
const config = configNames.map((name) => join(dir, name)).find((path) => existsSync(path));
const where = ["--dir", ".skein", ...(config === undefined ? [] : ["--config", config])];
process.exitCode = await runCli(["start", ...where, ...process.argv.slice(2)], version, terminal);
