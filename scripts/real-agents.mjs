// npm run real-agents: tests real agents from npm over ACP. A twin of each agent's provider acts as its model.
// Arguments are passed to vitest. For example, `npm run real-agents -- -t codex` tests one of them.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const pinned = join(root, "test/real-agents");
const folder = join(root, "node_modules/.cache/skein-agents");
const stampFile = join(folder, ".skein-agents");

install();
const env = { ...process.env, SKEIN_REAL_AGENTS: folder };
const tests = ["run", "test/real-agents", "--reporter=verbose", ...process.argv.slice(2)];
process.exitCode = spawnSync("vitest", tests, { cwd: root, env, stdio: "inherit" }).status ?? 1;

/**
 * Installs the packages in the lock file once. A stamp written last distinguishes a finished install from an
 * interrupted one.
 */
function install() {
  const lock = readFileSync(join(pinned, "package-lock.json"));
  const wanted = createHash("sha256").update(lock).digest("hex");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === wanted) return;
  console.error("real-agents: installing the agents: about 1 GB, a minute or two, only this once.");
  rmSync(stampFile, { force: true });
  mkdirSync(folder, { recursive: true });
  for (const file of ["package.json", "package-lock.json"])
    copyFileSync(join(pinned, file), join(folder, file));
  // The agents' programs are distributed as packages, and none of them needs an install script. Does not use npm ci,
  // which requires a package for every platform in the lock file, one of which has been unpublished.
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", 2, 2] });
  if (status !== 0) {
    console.error(`real-agents: npm install failed in ${folder}; see above, and try again`);
    process.exit(1);
  }
  writeFileSync(stampFile, wanted);
}
