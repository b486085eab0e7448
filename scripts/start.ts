// npm start: shows the bundled sample family, and what can be typed next.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runCli } from "../src/cli/main.ts";
import { processTerminal } from "../src/cli/output/terminal.ts";
import { root } from "./steps.ts";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const terminal = { ...processTerminal(), cwd: root };

console.log(`Skein ${version}\n\nA sample family of sessions: a main session that sent out two helpers.\n`);
for (const member of ["main", "gardens", "food"]) {
  const exit = await runCli(["sessions", "tree", `examples/family/${member}.jsonl`], version, terminal);
  if (exit !== 0) process.exitCode = exit;
  console.log();
}
console.log(`Type next:
  npm run -s skein -- sessions show examples/family/main.jsonl
      read the conversation
  npm run -s skein -- context examples/family/main.jsonl
      what a model would be sent
  npm run -s skein -- sessions tree <file>
      a session file of your own, of pi or OpenClaw
  npm run -s skein -- --help
      everything else
  npm test
      prove it all`);
