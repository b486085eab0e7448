import { openFolder } from "../../src/app/folder.ts";
import { attachRuns } from "../../src/app/runs.ts";
import { defaultConfig } from "../../src/config/load.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createIdSource } from "../../src/core/ids.ts";
import { sessionRefOf } from "../../src/core/session-ref.ts";
import type { SessionRecord, Store } from "../../src/entry-store.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import type { LedgerRuns } from "../../src/runs/ledger/ledger-runs.ts";
import { runIdOf } from "../../src/runs/ledger/run-ledger.ts";
import { Agents } from "../../src/sessions/agents.ts";
import { fakeApp } from "./fake-app.ts";

/** A folder's runs, without a process that executes them. */
export async function withRuns<T>(
  root: string,
  use: (runs: LedgerRuns, store: Store) => Promise<T>,
): Promise<T> {
  const store = await openFolder({ root, durability: "os" });
  try {
    const config = defaultConfig(root);
    const agents = new Agents({ config, env: () => undefined, definitions: [], configured: ["main"] });
    const app = fakeApp({
      store,
      config,
      agents,
      acp: { serves: () => true },
      channels: new Map([["desk", { id: "desk", deliver: async () => ({}) }]]),
      spaces: { missingStore: () => null },
      clock: systemClock,
      newId: createIdSource(),
      bus: { emit: () => undefined },
      worker: { wake: () => undefined },
    });
    return await use(attachRuns(app, { leaseMs: 600_000 }), store);
  } finally {
    await store.close();
  }
}

/** A run that requests an approval, and a dead letter. Their names are the ones in the help examples. */
export async function seedRuns(root: string): Promise<void> {
  await withRuns(root, async (runs, store) => {
    const init = { key: "agent:main:session:orders", sessionId: "orders", cwd: "/home/ann" };
    const session = await store.sessions.create({}, init);
    await acceptIn(runs, session, "pay the bill", "order-17");
    const claim = await runs.claim("somebody");
    if (claim === null) throw new Error("there is nothing to claim");
    const { runId } = claim.run;
    const expiresAt = Date.now() + 600_000;
    const asked = { toolCallId: "call-1", toolName: "pay", arguments: { euros: 17 }, expiresAt };
    await runs.requestApproval(claim.held, asked);
    await runs.wait(claim.held, { for: "approval" });
    const target = { channel: "desk", to: "ann" };
    const letter = {
      session: sessionRefOf(session),
      runId,
      target,
      text: "It is paid.",
      idempotencyKey: "letter-1",
    };
    const { outboxId } = await runs.outbox.put(letter);
    await runs.outbox.due("somebody", 1, 600_000);
    await runs.outbox.failed(outboxId, "somebody", "the desk is closed", "dead");
  });
}

/** A run that was lost four times. Its name is the one in the help examples. */
export async function seedLostRun(root: string): Promise<void> {
  await withRuns(root, async (runs, store) => {
    const init = { key: "agent:main:session:lost", sessionId: "lost", cwd: "/home/ann" };
    const { runId } = await acceptIn(runs, await store.sessions.create({}, init), "order tea", "order-18");
    for (let claim = await runs.claim("gone"); claim !== null; claim = await runs.claim("gone")) {
      if (claim.run.runId === runId) await runs.lose(claim.held);
    }
  });
}

/** A run that is waiting for the app desk. Its name is the one in the help examples. */
export async function seedWaitingRun(root: string): Promise<void> {
  const agents = [defineAgent({ id: "main" })];
  const desk = await createSkein({
    dir: root,
    config: null,
    app: "desk",
    agents,
    workers: false,
    quiet: true,
  });
  try {
    await desk.session({ sessionId: "desk" }).accept("order ink", { idempotencyKey: "order-19" });
  } finally {
    await desk.close();
  }
}

export async function acceptIn(
  runs: LedgerRuns,
  session: SessionRecord,
  content: string,
  idempotencyKey: string,
) {
  const { run } = await runs.accept({
    session: sessionRefOf(session),
    kind: "user",
    message: { role: "user", content },
    runId: runIdOf(session.userId, idempotencyKey),
    idempotencyKey,
    queueMode: "followup",
  });
  return run;
}
