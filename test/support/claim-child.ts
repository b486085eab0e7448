// A process for the claim tests. Claims and ends one folder's runs until the queue is empty, and reports which runs it
// claimed.
import { writeSync } from "node:fs";
import { systemClock } from "../../src/core/clock.ts";
import { createIdSource } from "../../src/core/ids.ts";
import { LedgerRuns } from "../../src/runs/ledger/ledger-runs.ts";
import { migrateRuns } from "../../src/runs/ledger/schema.ts";
import { openFilesStore } from "../../src/store/files/store.ts";

const [root = "", owner = "", dies = ""] = process.argv.slice(2);
const store = await openFilesStore({ root, index: "in place", durability: "os" });
migrateRuns(store.work.ledger);
const runs = new LedgerRuns({
  engine: store.work.engine,
  clock: systemClock,
  newId: createIdSource(),
  emit: () => undefined,
  isGone: (other) => other === "dead",
  underLock: ({ userId, agentId, sessionId }, fence) =>
    store.sessions.append({ ...(userId === null ? {} : { userId }), agentId }, sessionId, [], { fence }),
});
const isOver = async () => (await runs.list({ states: ["queued", "running"], limit: 1 })).length === 0;
while (!(await isOver())) {
  const claim = await runs.claim(owner);
  if (claim === null) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    continue;
  }
  const { run } = claim;
  writeSync(1, `claimed ${run.runId} ${run.fence}\n`);
  if (dies !== "") process.kill(process.pid, "SIGKILL");
  const held = { runId: run.runId, fence: run.fence };
  const scope = { ...(run.session.userId === null ? {} : { userId: run.session.userId }), agentId: "main" };
  const draft = { type: "message" as const, message: run.message };
  await store.sessions.append(scope, run.session.sessionId, [{ draft, id: run.entryId }], {
    fence: runs.heldFence(held),
  });
  await runs.markWritten(held);
  await runs.end(held, { state: "ok" });
}
await store.close();
