// Installs the packages in the lock file once. Written in plain JavaScript, because it runs on the same Node version as
// npm. A stamp written last marks a complete install. Output goes to stderr because stdout belongs to the caller.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const stampFile = join(modules, ".skein-setup");
const lockFile = join(root, ".setup.lock");
const pinnedNode = join(modules, "node", "bin", process.platform === "win32" ? "node.exe" : "node");
const longestWait = 10 * 60 * 1000;

const wanted = [
  createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex"),
  process.platform,
  process.arch,
].join(" ");

if (!isReady()) {
  takeLock();
  process.on("exit", () => rmSync(lockFile, { force: true }));
  // Another process might have finished the install while this one waited.
  if (!isReady()) install();
}

function isReady() {
  if (!existsSync(stampFile) || readFileSync(stampFile, "utf8") !== wanted) return false;
  return (
    existsSync(pinnedNode) &&
    directPackages().every((name) => existsSync(join(modules, name, "package.json")))
  );
}

function directPackages() {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.keys({ ...dependencies, ...devDependencies });
}

function install() {
  say("setting up: installing packages, and the Node version that Skein runs on (about a minute) …");
  rmSync(stampFile, { force: true });
  const npm = process.env.npm_execpath ?? "";
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const [command, ...before] = npm.endsWith("npm-cli.js") ? [process.execPath, npm] : ["npm"];
  const shell = before.length === 0 && process.platform === "win32";
  const result = spawnSync(command, [...before, ...args], { cwd: root, stdio: ["ignore", 2, 2], shell });
  if (result.status !== 0)
    fail(
      `npm ci failed (${result.error?.message ?? `exit ${result.status}`}). Fix the cause above and run it again.`,
    );
  const probe = spawnSync(pinnedNode, ["--version"], { encoding: "utf8" });
  if (probe.status !== 0) {
    fail(
      "the pinned Node did not install. If npm is configured to ignore install scripts, run: npm rebuild node --ignore-scripts=false",
    );
  }
  writeFileSync(stampFile, wanted);
  say(`set up: Node ${probe.stdout.trim()}`);
}

function takeLock() {
  const until = Date.now() + longestWait;
  let isReported = false;
  while (!tryLock()) {
    if (Date.now() > until)
      fail(`another setup has been running for ten minutes. If it is no longer running, delete ${lockFile}`);
    if (!isReported) say("another setup is running here; waiting for it …");
    isReported = true;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  }
}

function tryLock() {
  try {
    const file = openSync(lockFile, "wx");
    writeSync(file, String(process.pid));
    closeSync(file);
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  if (holderIsGone()) setAside();
  return false;
}

/**
 * Renames the lock instead of deleting it, so that if two processes find it stale, only one of them takes it. A valid
 * lock is restored.
 */
function setAside() {
  const aside = `${lockFile}.${process.pid}`;
  try {
    renameSync(lockFile, aside);
  } catch (error) {
    if (error.code === "ENOENT") return;
    throw error;
  }
  if (isGone(readFileSync(aside, "utf8"))) rmSync(aside);
  else renameSync(aside, lockFile);
}

function holderIsGone() {
  try {
    const text = readFileSync(lockFile, "utf8");
    // An empty lock is either being written, or its writer was killed before writing to it.
    return text === "" ? Date.now() - statSync(lockFile).mtimeMs > 5000 : isGone(text);
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
    return false; // the lock has just been released
  }
}

function isGone(holder) {
  if (!/^[1-9]\d*$/.test(holder)) return true;
  try {
    process.kill(Number(holder), 0);
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

function fail(text) {
  say(text);
  process.exit(1);
}

function say(text) {
  process.stderr.write(`skein: ${text}\n`);
}
