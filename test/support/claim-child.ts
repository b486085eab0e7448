// A process for the claim tests. Claims and ends one folder's runs until the queue is empty, and reports which runs it
// claimed.
import { writeSync } from "node:fs";
import { systemClock } from "../../src/core/clock.ts";
import { createIdSource } from "../../src/core/ids.ts";
import { EmbeddedRuns } from "../../src/runs/ledger/embedded-runs.ts";
import { openFilesStore } from "../../src/store/files/store.ts";

const [root = "", owner = "", dies = ""] = process.argv.slice(2);
const store = await openFilesStore({ root, index: "in place", durability: "os" });
const runs = new EmbeddedRuns({
  ledger: store.work.ledger,
  clock: systemClock,
  newId: createIdSource(),
  emit: () => undefined,
  isGone: (other) => other === "dead",
  underLock: ({ userId, agentId, sessionId }, act) =>
    store.sessions.append({ ...(userId === null ? {} : { userId }), agentId }, sessionId, [], { fence: act }),
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
    fence: () => runs.isHeld(held),
  });
  await runs.markWritten(held);
  await runs.end(held, { state: "ok" });
}
await store.close();
