// npm run check: format, lint, types, architecture, and the CLI with plain Node, all in parallel. Changes nothing.
import { runStep } from "./steps.ts";

const withoutArchitecture = process.argv.includes("--without-architecture");

await Promise.all([
  runStep("types", "tsc", ["--project", "."]),
  runStep("types of the console", "tsc", ["--project", "console", "--noEmit"]),
  runStep("format and lint", "biome", ["ci", "--colors=off"]),
  runCliByPlainNode(),
  withoutArchitecture ? null : runStep("architecture", "vitest", ["run", "test/architecture"]),
]);

/** The test runner accepts syntax that type stripping does not, so the CLI is run once with plain Node. */
async function runCliByPlainNode(): Promise<void> {
  const args = ["bin/skein.mjs", "context", "examples/family/main.jsonl", "--json"];
  const context = await runStep("cli by plain node", "node", args);
  if (JSON.parse(context).request.messages.length === 0) throw new Error("the sample's context is empty");
}
