// npm run real-agents: real agents from npm, spoken to over ACP, each with a twin of its provider as its model. Arguments go to
// vitest: `npm run real-agents -- -t codex` tries one of them.
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

/** What the lock file says, once; a stamp written last tells a finished install from one that was cut off. */
function install() {
  const lock = readFileSync(join(pinned, "package-lock.json"));
  const wanted = createHash("sha256").update(lock).digest("hex");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === wanted) return;
  console.error("real-agents: installing the agents: about 1 GB, a minute or two, only this once.");
  rmSync(stampFile, { force: true });
  mkdirSync(folder, { recursive: true });
  for (const file of ["package.json", "package-lock.json"])
    copyFileSync(join(pinned, file), join(folder, file));
  // Their programs come as packages; none of them needs a script for it. Not npm ci, which wants a package for every platform
  // in the lock file, and one of them was taken back.
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", 2, 2] });
  if (status !== 0) {
    console.error(`real-agents: npm install failed in ${folder}; see above, and try again`);
    process.exit(1);
  }
  writeFileSync(stampFile, wanted);
}
