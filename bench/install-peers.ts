import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The peers are dependencies of this folder only. They are installed when they are first measured. */

const folder = fileURLToPath(new URL(".", import.meta.url));
const stampFile = join(folder, "node_modules/.skein-bench");
const lockFile = join(folder, "package-lock.json");

export function installPeers(): void {
  const wanted = createHash("sha256").update(readFileSync(lockFile)).digest("hex");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === wanted) return;
  say("installing the peers to measure against: about 1.2 GB, some minutes, only this once.");
  say("npm run bench -- --no-peers does without them.");
  npm(["ci", "--ignore-scripts", "--loglevel=error"]);
  // The only peer whose database is compiled from source if no binary can be downloaded. If that fails, ADK is omitted.
  if (!npm(["rebuild", "sqlite3", "--loglevel=error"], true))
    say("sqlite3 did not build: Google ADK will be left out.");
  writeFileSync(stampFile, wanted);
}

function npm(args: readonly string[], mayFail = false): boolean {
  const { status } = spawnSync("npm", args, {
    cwd: folder,
    stdio: ["ignore", 2, 2],
    env: { ...process.env, ...headers() },
  });
  if (status !== 0 && !mayFail)
    throw new Error(`npm ${args[0]} failed in bench/; see above, or add --no-peers`);
  return status === 0;
}

/** The headers of the running Node version, if they are installed with it. Compiling then needs no download. */
function headers(): Record<string, string> {
  const home = dirname(dirname(realpathSync(process.execPath)));
  return existsSync(join(home, "include/node/node_api.h")) ? { npm_config_nodedir: home } : {};
}

/** The versions of the installed packages, keyed by name. */
export function peerVersions(packages: readonly string[]): Record<string, string> {
  const found = packages.flatMap((name) => {
    const manifest = join(folder, "node_modules", name, "package.json");
    if (!existsSync(manifest)) return [];
    return [[name, (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version]];
  });
  return Object.fromEntries(found);
}

function say(text: string): void {
  process.stderr.write(`bench: ${text}\n`);
}
