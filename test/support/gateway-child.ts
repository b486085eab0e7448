// A process for the `skein start` tests. Runs the command itself on a small server. With --stuck, stopping never
// finishes.

import { processSignals } from "../../src/cli/gateway/stop-requests.ts";
import { reportFailure } from "../../src/cli/output/errors.ts";
import { exitOnSignals, processTerminal } from "../../src/cli/output/terminal.ts";
import { startCommand } from "../../src/cli/start.ts";
import { listen, smallPieces } from "./small-gateway.ts";

const [dir = "", flag] = process.argv.slice(2);
exitOnSignals();
const signals = processSignals();
const pieces = smallPieces();
const stuck = smallPieces({
  listen: async (parts) => ({ ...(await listen(parts)), close: () => new Promise(() => undefined) }),
});
const terminal = processTerminal();
process.exitCode = await startCommand(
  { terminal, options: { dir, port: 0 } },
  { version: "1.2.3", pieces: flag === "--stuck" ? stuck : pieces, signals },
).then(
  () => 0,
  (error: unknown) => reportFailure(error, terminal, false),
);
