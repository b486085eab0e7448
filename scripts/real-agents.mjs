// npm run real-agents: tests real agents from npm over ACP. A twin of each agent's provider acts as its model.
// Arguments are passed to vitest. For example, `npm run real-agents -- -t codex` tests one of them.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPinned } from "./install-pinned.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, "node_modules/.cache/skein-agents");

installPinned({ name: "real-agents", size: "1 GB", pinned: join(root, "test/real-agents"), folder });
const env = { ...process.env, SKEIN_REAL_AGENTS: folder };
const tests = ["run", "test/real-agents", "--reporter=verbose", ...process.argv.slice(2)];
process.exitCode = spawnSync("vitest", tests, { cwd: root, env, stdio: "inherit" }).status ?? 1;
