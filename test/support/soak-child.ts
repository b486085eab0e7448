// A process for the soak test. Runs the real gateway on a folder and reports its resources on request. SOAK_LEAK=events
// leaks every event, and SOAK_LEAK=files leaks a file that it opens for each event.
import { openSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { GatewayPieces } from "../../src/app/gateway.ts";
import { gatewayPieces } from "../../src/app/gateway.ts";
import { openGateway } from "../../src/cli/gateway/open-gateway.ts";
import { createEventHub } from "../../src/gateway/events/hub.ts";
import type { SoakSample } from "./soak-judge.ts";

const [home = ""] = process.argv.slice(2);
const root = join(home, "root");
const leak = process.env.SOAK_LEAK;
const kept: unknown[] = [];

/** Only a few events are kept, so that the ring buffer is full long before the warm-up ends. */
const pieces: GatewayPieces = {
  ...gatewayPieces,
  openHub: ({ numbers, subscribe, redactor, report }) => {
    if (leak !== undefined) subscribe((event) => void kept.push(leaked(event)));
    return createEventHub({
      numbers,
      redactor: {
        redact: (text) => redactor().redact(text),
        redactJson: (value) => redactor().redactJson(value),
        stream: () => redactor().stream(),
      },
      subscribe,
      report,
      limits: { events: 200 },
    });
  },
};

/** Leaks memory or files, as careless code would. */
function leaked(event: object): unknown {
  return leak === "files"
    ? openSync(process.execPath, "r")
    : { ...event, padding: "x".repeat(20_000).split("") };
}

function sample(): SoakSample {
  globalThis.gc?.();
  globalThis.gc?.();
  const wals = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith("-wal"),
  );
  return {
    atMs: performance.now(),
    heapBytes: process.memoryUsage().heapUsed,
    resources: process.getActiveResourcesInfo().filter((name) => !passing.has(name)).length,
    fds: readdirSync("/proc/self/fd").length,
    walBytes: wals.reduce((sum, name) => sum + sizeOf(join(root, name)), 0),
  };
}

/** Work in progress that ends on its own. */
const passing = new Set(["FSReqCallback", "FSReqPromise", "Immediate", "TickObject", "CloseReq"]);

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

writeFileSync(
  join(home, "skein.yaml"),
  `defaults: { model: rehearsal/basic }\nlogging: { level: error, file: ${join(home, "log")} }\n`,
);
const where = { cwd: home, root, env: { HOME: home } };
const opened = await openGateway({ where, overrides: { port: 0 }, version: "0.0.0", pieces });
if (!opened.isMine) throw new Error("another gateway is running for this folder");
process.on("message", (word) => {
  if (word === "sample") process.send?.({ sample: sample() });
  else void opened.close(2000).then(() => process.disconnect?.());
});
process.send?.({ url: opened.url, token: readFileSync(join(root, "token"), "utf8").trim() });
