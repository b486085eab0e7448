import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { SessionRef } from "../../../src/core/session-ref.ts";
import { brief, laterClock, messagesOf } from "../../support/run-skein.ts";
import type { RunSkeinInside } from "../../support/run-skein-inside.ts";
import { openRunsInside } from "../../support/run-skein-inside.ts";

const base = mkdtempSync(join(tmpdir(), "skein-company-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** A session with announcements from three runs. No process has claimed them yet. */
async function announced({ inside }: RunSkeinInside): Promise<string[]> {
  const init = { key: "agent:main:session:s", sessionId: "s", cwd: "/" };
  const { uid, userId, agentId, key, sessionId } = await inside.store.sessions.create(
    { agentId: "main" },
    init,
  );
  const session: SessionRef = { uid, userId, agentId, key, sessionId };
  const ids: string[] = [];
  for (const name of ["a", "b", "c"]) {
    const { run } = await inside.runs.accept({
      session,
      kind: "announce",
      message: { role: "user", content: `News of ${name}` },
      arrivalOf: `run ${name}`,
      provenance: { kind: "inter_session", sourceSessionKey: `agent:main:session:${name}` },
      isDelivery: true,
    });
    ids.push(run.runId);
  }
  return ids;
}

async function untilEnded({ skein }: RunSkeinInside, runIds: readonly string[]): Promise<void> {
  for (const runId of runIds)
    while ((await skein.runs.get(runId))?.outcome === null)
      await new Promise((resolve) => void setTimeout(resolve, 10));
}

test("[FAM25] the model gets one request, with all announcements before it", async () => {
  const asked: string[] = [];
  const open = await openRunsInside({
    workers: false,
    script: ({ prompt }) => {
      asked.push(JSON.stringify(prompt));
      return { text: "Heard." };
    },
  });
  const ids = await announced(open);
  open.inside.worker.start();
  await untilEnded(open, ids);
  expect(asked).toHaveLength(1);
  for (const name of ["a", "b", "c"])
    expect(asked[0]?.match(new RegExp(`News of ${name}`, "g"))).toHaveLength(1);
  const messages = await messagesOf(open.skein, "s");
  expect(messages.map(brief)).toEqual([
    "user: News of a",
    "user: News of b",
    "user: News of c",
    "assistant: Heard.",
  ]);
  expect(messages.slice(0, 3).map((message) => "provenance" in message)).toEqual([true, true, true]);
  const states = await Promise.all(ids.map(async (runId) => (await open.skein.runs.get(runId))?.state));
  expect(states).toEqual(["ok", "merged", "merged"]);
  await open.skein.close({ graceMs: 0 });
});

test.each([0, 1])(
  "an owner is lost after %i of the batched announcements: each is written once",
  async (calls) => {
    const dir = mkdtempSync(join(base, "lost-"));
    const lost = await openRunsInside({ dir, workers: false });
    const ids = await announced(lost);
    const reached = Promise.withResolvers<void>();
    const { runs } = lost.inside;
    const mergeInput = runs.mergeInput.bind(runs);
    let done = 0;
    const stopping: typeof runs.mergeInput = async (...args) => {
      if (done++ < calls) return mergeInput(...args);
      Object.assign(runs, { renew: async () => [], end: () => new Promise(() => undefined) });
      reached.resolve();
      return new Promise(() => undefined);
    };
    Object.assign(runs, { mergeInput: stopping });
    lost.inside.worker.start();
    await reached.promise;
    const next = await openRunsInside({ dir, clock: laterClock, script: () => ({ text: "Heard." }) });
    await untilEnded(next, ids);
    const all = (await messagesOf(next.skein, "s")).map(brief).join("\n");
    for (const name of ["a", "b", "c"]) expect(all.match(new RegExp(`News of ${name}`, "g"))).toHaveLength(1);
    expect(all.match(/Heard/g)).toHaveLength(1);
    await next.skein.close({ graceMs: 0 });
  },
);
