// Runs `skein` as bin/skein.mjs does and records when it started and when everything that `start` needs was loaded. The
// previous start's compile cache is kept. The first start of a compiled benchmark has none and is not counted.
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

const bootMs = performance.now();
enableCompileCache(fileURLToPath(new URL("../../.cache", import.meta.url)));
const { exitOnSignals, runCli } = await import("../../src/cli/main.ts");
await Promise.all([
  import("../../src/cli/gateway/stop-requests.ts"),
  import("../../src/cli/start.ts"),
  import("../../src/app/gateway.ts"),
]);
process.stderr.write(`loaded: ${bootMs} ${performance.now()}\n`);
exitOnSignals();
process.exitCode = await runCli(process.argv.slice(2), "0.0.0");
