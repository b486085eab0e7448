// npm start: creates a sample family of sessions in ./.skein if it has none, builds the console if it has changed, and starts the gateway.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadOptions } from "../src/cli/connection/with-folder.ts";
import { exitOnSignals, runCli } from "../src/cli/main.ts";
import { reportFailure } from "../src/cli/output/errors.ts";
import { processTerminal } from "../src/cli/output/terminal.ts";
import { configNames } from "../src/config/find-file.ts";
import { buildStaleConsole } from "./build-console.ts";
import { makeFamily } from "./sample-family.ts";
import { root } from "./steps.ts";
import { usualPortTaken } from "./usual-port.ts";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const terminal = { ...processTerminal(), cwd: root, command: "npm run -s skein --" };
const dir = join(root, ".skein");
const args = process.argv.slice(2);
exitOnSignals();

const hints = `
Try next, in another terminal:
  npm run -s skein -- sessions ls --dir .skein
      list the sessions
  npm run -s skein -- chat --dir .skein
      talk to the main session; ask "what can you do" for what it understands
  npm run -s skein -- spawn describe the gardens of Porto --dir .skein
      give a helper a task
  npm run -s skein -- sessions tree main --dir .skein
      read a conversation with all its branches
  npm run -s skein -- context main --dir .skein
      show the request that a model would get
  npm run -s skein -- token create --label ann --for ann --scope read,write --dir .skein
      create a token for a colleague's program (docs/gateway.md)
  npm run -s skein -- --help
      list all commands
  npm test
      run all tests
`;

async function start(): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) return runCli(["start", "--help"], version, terminal);
  console.log(`Skein ${version}\n`);
  const made = await makeFamily(dir, { say: (line) => console.log(line) });
  console.log(
    made === "made"
      ? "\nThe rehearsal model created this sample family of sessions in .skein, offline and free of charge."
      : "The folder .skein has sessions already. Delete it to get a new sample family at the next start.",
  );
  // Uses the folder's own configuration rather than one from a parent folder, which might name a paid model.
  const file = configNames.map((name) => join(dir, name)).find((path) => existsSync(path));
  const where = file === undefined ? { dir } : { dir, config: file };
  const taken = await usualPortTaken(args, loadOptions({ terminal, options: where }));
  await buildStaleConsole((line) => console.log(line));
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
