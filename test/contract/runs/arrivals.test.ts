import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { SessionRef } from "../../../src/core/session-ref.ts";
import { defineTool } from "../../../src/index.ts";
import { brief, entriesOf, gateOf, laterClock, messagesOf } from "../../support/run-skein.ts";
import type { RunSkeinInside } from "../../support/run-skein-inside.ts";
import { openRunsInside } from "../../support/run-skein-inside.ts";

const base = mkdtempSync(join(tmpdir(), "skein-arrivals-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

async function sessionOf({ inside }: RunSkeinInside, name: string): Promise<SessionRef> {
  const init = { key: `agent:main:session:${name}`, sessionId: name, cwd: "/" };
  const { uid, userId, agentId, key, sessionId } = await inside.store.sessions.create(
    { agentId: "main" },
    init,
  );
  return { uid, userId, agentId, key, sessionId };
}

const said = (content: string) => ({ role: "user", content }) as const;

/** A run that is sleeping until two others end. A `wakeAt` in the past wakes it immediately. */
async function sleeper(dir: string, wakeAt: number) {
  const open = await openRunsInside({ dir, workers: false });
  const { runs, store } = open.inside;
  const session = await sessionOf(open, "s");
  const others = await Promise.all(
    ["a", "b"].map(async (name) => {
      const { run } = await runs.accept({
        session: await sessionOf(open, name),
        kind: "user",
        message: said(name),
      });
      return run.runId;
    }),
  );
  for (const _ of others) await runs.claim("somebody");
  const { run } = await runs.accept({ session, kind: "user", message: said("Sleep") });
  const claim = await runs.claim("somebody");
  expect(claim?.run.runId).toBe(run.runId);
  const draft = { type: "message", message: said("Sleep") } as const;
  await store.sessions.append({ agentId: "main" }, "s", [{ draft, id: run.entryId }]);
  const held = { runId: run.runId, fence: claim?.run.fence ?? 0 };
  expect(await runs.sleep(held, { waitFor: others, wakeAt })).toBe("sleeping");
  return { open, session, runId: run.runId, others };
}

/** Stops forever at its nth mark. */
function silentAfter(
  { inside }: RunSkeinInside,
  method: "mergeInput" | "markWritten",
  calls: number,
): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const { runs } = inside;
  const act = runs[method].bind(runs) as (...args: unknown[]) => Promise<void>;
  let done = 0;
  const stopping = async (...args: unknown[]): Promise<void> => {
    if (done === calls) {
      Object.assign(runs, { renew: async () => [], end: () => new Promise(() => undefined) });
      reached.resolve();
      return new Promise(() => undefined);
    }
    done += 1;
    return act(...args);
  };
  Object.assign(runs, { [method]: stopping });
  return reached.promise;
}

async function untilEnded({ skein }: RunSkeinInside, runId: string): Promise<void> {
  while ((await skein.runs.get(runId))?.outcome === null)
    await new Promise((resolve) => void setTimeout(resolve, 10));
}

describe("a woken run that loses its owner while it reads its messages", () => {
  test.each([0, 1])("[LIB12] after %i of two messages: each is written once", async (calls) => {
    const dir = mkdtempSync(join(base, "two-"));
    const { open, session, runId, others } = await sleeper(dir, Date.now() + 3_600_000);
    for (const [index, arrivalOf] of others.entries()) {
      const message = said(`News ${index}`);
      await open.inside.runs.accept({ session, kind: "announce", message, arrivalOf, isDelivery: true });
    }
    await open.skein.close({ graceMs: 0 });
    const lost = await openRunsInside({ dir, workers: false });
    const gone = silentAfter(lost, "mergeInput", calls);
    lost.inside.worker.start();
    await gone;
    const next = await openRunsInside({ dir, clock: laterClock, script: () => ({ text: "I heard." }) });
    await untilEnded(next, runId);
    const all = (await messagesOf(next.skein, "s")).map(brief).join("\n");
    expect(all.match(/News 0/g)).toHaveLength(1);
    expect(all.match(/News 1/g)).toHaveLength(1);
    expect(all).toMatch(/I heard\.$/);
    await next.skein.close({ graceMs: 0 });
  });

  test("[LIB12] after the note of its wake time: the note is written once", async () => {
    const dir = mkdtempSync(join(base, "time-"));
    const { open, runId } = await sleeper(dir, Date.now() - 1);
    await open.skein.close({ graceMs: 0 });
    const lost = await openRunsInside({ dir, workers: false });
    const gone = silentAfter(lost, "markWritten", 0);
    lost.inside.worker.start();
    await gone;
    const next = await openRunsInside({ dir, clock: laterClock, script: () => ({ text: "It is late." }) });
    await untilEnded(next, runId);
    const notes = (await entriesOf(next.skein, "s")).filter(({ type }) => type === "custom_message");
    expect(notes).toHaveLength(1);
    expect((await next.skein.runs.get(runId))?.outcome?.reply).toBe("It is late.");
    await next.skein.close({ graceMs: 0 });
  });
});

describe("input steered in by an owner that is lost", () => {
  test.each([0, 1])(
    "[LIB12] after %i of two: each is written once, and shares the outcome",
    async (calls) => {
      const dir = mkdtempSync(join(base, "steer-"));
      const gate = gateOf();
      const hold = defineTool({ name: "hold", description: "Holds.", execute: () => gate.wait() });
      const lost = await openRunsInside({ dir, tools: [hold], script: [{ calls: [{ name: "hold" }] }] });
      const gone = silentAfter(lost, "mergeInput", calls);
      const first = lost.skein.session({ sessionId: "s" }).send("Work");
      await gate.reached;
      const late = ["One more", "And more"].map((text, index) =>
        lost.skein
          .session({ sessionId: "s" })
          .send(text, { queueMode: "steer", idempotencyKey: `late-${index}` }),
      );
      for (const { runId } of late)
        while ((await lost.skein.runs.get(runId)) === null) await new Promise(setImmediate);
      gate.pass();
      await gone;
      const next = await openRunsInside({
        dir,
        clock: laterClock,
        tools: [hold],
        script: () => ({ text: "All of it." }),
      });
      for (const { runId } of [first, ...late]) await untilEnded(next, runId);
      const told = (await messagesOf(next.skein, "s")).map(brief);
      expect(told.filter((text) => text.startsWith("user: "))).toEqual([
        "user: Work",
        "user: One more",
        "user: And more",
      ]);
      expect(told.at(-1)).toBe("assistant: All of it.");
      for (const { runId } of late)
        expect(await next.skein.runs.get(runId)).toMatchObject({
          outcome: { state: "ok", reply: "All of it." },
        });
      await next.skein.close({ graceMs: 0 });
    },
  );
});
