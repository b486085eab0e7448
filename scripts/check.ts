// npm run check: format, lint, types, architecture, and the CLI by plain Node. Changes nothing.
import { step } from "./steps.ts";

const withoutArchitecture = process.argv.includes("--without-architecture");

step("format and lint", "biome", ["ci", "--colors=off"]);
step("types", "tsc", ["--project", "."]);
// A test runner forgives what type stripping does not, so the CLI runs once as it is.
const context = step("cli by plain node", "node", [
  "bin/skein.mjs",
  "context",
  "examples/family/main.jsonl",
  "--json",
]);
if (JSON.parse(context).request.messages.length === 0) throw new Error("the sample's context is empty");
if (!withoutArchitecture) step("architecture", "vitest", ["run", "test/architecture"]);
