// npm start: makes a sample family of sessions in ./.skein, shows it, and says what can be typed next.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runCli } from "../src/cli/main.ts";
import { processTerminal } from "../src/cli/output/terminal.ts";
import { makeFamily } from "../src/cli/sample/make-family.ts";
import { root } from "./steps.ts";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const terminal = { ...processTerminal(), cwd: root };

async function show(title: string, ...args: readonly string[]): Promise<void> {
  console.log(`\n${title}\n`);
  const exit = await runCli([...args, "--dir", ".skein"], version, terminal);
  if (exit !== 0) process.exitCode = exit;
}

console.log(`Skein ${version}\n\nA sample family of sessions, by the rehearsal model: offline, and free.\n`);
const made = await makeFamily(join(root, ".skein"), { say: (line) => console.log(line) });
if (made === "there") console.log("It is in .skein already; take that folder away for a new one.");
await show("The sessions:", "sessions", "ls");
await show("The main one, with what it set off:", "sessions", "tree", "main");
console.log(`
Type next:
  npm run -s skein -- chat --dir .skein
      talk with the main session; "what can you do" tells what it understands
  npm run -s skein -- spawn describe the gardens of Porto --dir .skein
      give a helper a task
  npm run -s skein -- tool sessions_list --dir .skein
      what the agent sees of the other sessions
  npm run -s skein -- sessions show main --dir .skein
      read the conversation
  npm run -s skein -- context main --dir .skein
      what a model would be sent
  npm run -s skein -- --help
      everything else
  npm test
      prove it all`);
