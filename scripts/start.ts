// npm start: makes a sample family of sessions in ./.skein where there is none, and opens the gateway on it.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadOptions } from "../src/cli/connection/with-folder.ts";
import { exitOnSignals, runCli } from "../src/cli/main.ts";
import { reportFailure } from "../src/cli/output/errors.ts";
import { processTerminal } from "../src/cli/output/terminal.ts";
import { configNames } from "../src/config/find-file.ts";
import { makeFamily } from "./sample-family.ts";
import { root } from "./steps.ts";
import { usualPortTaken } from "./usual-port.ts";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const terminal = { ...processTerminal(), cwd: root, command: "npm run -s skein --" };
const dir = join(root, ".skein");
const args = process.argv.slice(2);
exitOnSignals();

const hints = `
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
  npm run -s skein -- token create --label ann --for ann --scope read,write --dir .skein
      let a colleague's program in; docs/gateway.md has more
  npm run -s skein -- --help
      everything else
  npm test
      prove it all
`;

async function start(): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) return runCli(["start", "--help"], version, terminal);
  console.log(`Skein ${version}\n`);
  const made = await makeFamily(dir, { say: (line) => console.log(line) });
  console.log(
    made === "made"
      ? "\nThis sample family of sessions was made by the rehearsal model: offline, and free. It is in .skein."
      : "The sessions in .skein are there already; without that folder the next start makes a new family.",
  );
  // Its own configuration, not one that lies further up: that may name a model that costs something.
  const file = configNames.map((name) => join(dir, name)).find((path) => existsSync(path));
  const where = file === undefined ? { dir } : { dir, config: file };
  const taken = await usualPortTaken(args, loadOptions({ terminal, options: where }));
  console.log(hints);
  if (taken !== null)
    console.log(
      `Port ${taken} is in use by another program, so a free one is used. Choose one with npm start -- --port <number>.\n`,
    );
  const places = ["--dir", ".skein", ...(file === undefined ? [] : ["--config", file])];
  const ports = taken === null ? [] : ["--port", "0"];
  return runCli(["start", ...places, ...ports, ...args], version, terminal);
}

try {
  process.exitCode = await start();
} catch (error) {
  process.exitCode = reportFailure(error, terminal, false);
}
