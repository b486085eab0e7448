// Prints the files in src/ in which a function runs between the call to `chat.send` and the commit that makes its
// message durable. Earlier messages have already loaded everything that is loaded lazily.

import type { Profiler } from "node:inspector";
import { Session } from "node:inspector";
import { openSkein } from "../../src/app.ts";
import { Tokens } from "../../src/gateway/auth/tokens.ts";
import { allHandlers } from "../../src/gateway/methods/handlers.ts";
import { localPrincipal } from "../../src/gateway/methods/local-calls.ts";
import type { App } from "../../src/sessions/app.ts";
import { requireLedger } from "../../src/store/work.ts";

const [dir = ""] = process.argv.slice(2);
const inside = Promise.withResolvers<App>();
const skein = await openSkein({ dir, config: null, quiet: true, workers: false }, inside.resolve);
const app = await inside.promise;
const ledger = requireLedger(app.store.work, "this test");
const tokens = new Tokens(app.store.work, { clock: app.clock });
const handlers = allHandlers({ ...app, skein, tokens });
const { signal } = new AbortController();
const call = { principal: localPrincipal, userId: null, isAdmin: true, isLocal: true, signal };

const send = (idempotencyKey: string) =>
  handlers["chat.send"]({ sessionKey: "agent:main:main", message: "Hello", idempotencyKey }, call);

const inspector = new Session();
inspector.connect();

/** The functions that have run since the last call. An inspector on the same thread answers synchronously. */
function takeCoverage(): readonly Profiler.ScriptCoverage[] {
  let scripts: readonly Profiler.ScriptCoverage[] = [];
  inspector.post("Profiler.takePreciseCoverage", (error, taken) => {
    if (error !== null) throw error;
    scripts = taken.result;
  });
  return scripts;
}

await send("first");
await send("second");
inspector.post("Profiler.enable");
inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
const { exclusively } = ledger;
let coverage: readonly Profiler.ScriptCoverage[] = [];
let depth = 0;
ledger.exclusively = (act) => {
  depth++;
  try {
    return exclusively.call(ledger, act) as ReturnType<typeof act>;
  } finally {
    depth--;
    if (depth === 0) coverage = takeCoverage();
  }
};
takeCoverage();
await send("third");

const files = coverage
  .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
  .flatMap(({ url }) => /^file:.*\/(src\/(?!.*node_modules).*)$/.exec(url)?.[1] ?? []);
process.stdout.write(`${JSON.stringify([...new Set(files)].toSorted())}\n`);
await skein.close();
