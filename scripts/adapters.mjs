// npm run adapters: tests the adapters with the real frameworks from npm, in the long form: the validation suites also run on
// a folder and on PostgreSQL. `npm test` runs the short form. Arguments are passed to vitest.
import { spawnSync } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const env = { ...process.env, SKEIN_ADAPTERS: "whole" };
const tests = ["run", "--project", "frameworks", "--reporter=verbose", ...process.argv.slice(2)];
process.exitCode = spawnSync("vitest", tests, { cwd: root, env, stdio: "inherit" }).status ?? 1;
