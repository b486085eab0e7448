// `skein` as bin/skein.mjs runs it, with a word on when it began and when all that `start` needs was loaded.
const bootMs = performance.now();
const { exitOnSignals, runCli } = await import("../../src/cli/main.ts");
await Promise.all([
  import("../../src/cli/start/stopping.ts"),
  import("../../src/cli/commands/start.ts"),
  import("../../src/cli/start/gateway-pieces.ts"),
]);
process.stderr.write(`loaded: ${bootMs} ${performance.now()}\n`);
exitOnSignals();
process.exitCode = await runCli(process.argv.slice(2), "0.0.0");

export {};
