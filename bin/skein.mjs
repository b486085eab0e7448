#!/usr/bin/env node
// Checks the Node version before loading anything that an old version could not parse.
const needed = 24;
const running = process.versions.node;

if (Number(running.split(".")[0]) < needed) {
  process.stderr.write(
    `skein requires Node ${needed} or newer, but this is Node ${running}. Install a newer Node, or in a checkout use: npm run skein -- <command>\n`,
  );
  process.exitCode = 1;
} else {
  // A checkout runs the source directly. The published package contains only dist.
  const { existsSync, readFileSync } = await import("node:fs");
  const { fileURLToPath } = await import("node:url");
  const source = new URL("../src/cli/main.ts", import.meta.url);
  const built = new URL("../dist/cli.js", import.meta.url);
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const isCheckout = existsSync(source);
  // Compiling takes a large part of a start: for TypeScript, half of it. The cache is next to the code, so only accounts that may
  // change the code can write it. If no account may, nothing is cached.
  const { enableCompileCache } = await import("node:module");
  enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/skein", import.meta.url)));
  const { exitOnSignals, runCli } = await import((isCheckout ? source : built).href);
  exitOnSignals();
  // A reader that exits early (`| head`) is not a failure. A full disk is.
  process.stdout.on("error", (error) => {
    if (error.code !== "EPIPE")
      process.stderr.write(`error: The output cannot be written: ${error.message}.\n`);
    process.exit(error.code === "EPIPE" ? 0 : 1);
  });
  process.exitCode = await runCli(process.argv.slice(2), version);
}
