import { spawn } from "node:child_process";
import { globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { root } from "./steps.ts";

/** The page from the last build. Every build rewrites it, so its modification time is the time of the build. */
const page = "dist/console/index.html";
/** The page's sources: its own files, the client, and the packages. */
const sources = [
  "console/**/*",
  "src/entry-client.ts",
  "src/{client,core,protocol}/**/*.ts",
  "package-lock.json",
];

/** Builds the console into `dist/console`. Rejects with the build messages if the build fails. */
export async function buildConsole(folder = root): Promise<void> {
  const vite = join(root, "node_modules", "vite", "bin", "vite.js");
  const config = join(folder, "console", "vite.config.ts");
  const args = [vite, "build", "--config", config, "--logLevel", "error"];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [output, problems, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (status !== 0) throw new Error(`${output}${problems}`.trim() || `vite ended with status ${status}`);
}

/** The size limit for everything that a browser loads before the first view, gzipped. */
export const maxFirstLoadBytes = 250_000;

/** Throws if the first view of the built console exceeds its size limit. */
export function checkConsoleSize(folder = root, maxBytes = maxFirstLoadBytes): void {
  const { firstLoadBytes } = measureConsole(folder);
  if (firstLoadBytes <= maxBytes) return;
  throw new Error(
    `The first view of the console is ${firstLoadBytes} bytes gzipped, more than its budget of ${maxBytes}. Load what it does not need with import().`,
  );
}

/** Returns the gzipped sizes of the files that `index.html` references, and of all files. */
export function measureConsole(folder = root): {
  readonly firstLoadBytes: number;
  readonly totalBytes: number;
} {
  const html = readFileSync(join(folder, page));
  const assets = join(folder, "dist/console/assets");
  let [firstLoadBytes, totalBytes] = [gzipSync(html).length, gzipSync(html).length];
  for (const name of readdirSync(assets)) {
    const { length } = gzipSync(readFileSync(join(assets, name)));
    totalBytes += length;
    if (html.includes(`assets/${name}"`)) firstLoadBytes += length;
  }
  return { firstLoadBytes, totalBytes };
}

/**
 * Builds the console unless the last build is newer than its sources. A failure is only printed, because the gateway
 * works without the page.
 */
export async function buildStaleConsole(
  say: (line: string) => void,
  { folder = root, build = buildConsole } = {},
): Promise<void> {
  if (isConsoleFresh(folder)) return;
  say("Building the console …");
  const started = performance.now();
  try {
    await build(folder);
    say(`The console is built (${((performance.now() - started) / 1000).toFixed(1)} s).`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    say(`The console could not be built, so the gateway starts without its page:\n${reason}`);
  }
}

/** Compares only modification times, which takes a few milliseconds. */
export function isConsoleFresh(folder = root): boolean {
  const builtMs = statSync(join(folder, page), { throwIfNoEntry: false })?.mtimeMs;
  if (builtMs === undefined) return false;
  const isNewer = (path: string) => {
    const file = statSync(join(folder, path));
    return file.isFile() && file.mtimeMs > builtMs;
  };
  const isTest = (name: string) => /\.test\.tsx?$/.test(name);
  return !globSync(sources, { cwd: folder, exclude: isTest }).some(isNewer);
}
