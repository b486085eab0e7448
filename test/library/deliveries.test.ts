import { afterEach, expect, test } from "vitest";
import type { Channel, OutboxRow } from "../../src/index.ts";
import { defineTool } from "../../src/index.ts";
import { budgetExceeded } from "../../src/runs/ledger/budgets.ts";
import { acceptRequest } from "../../src/sessions/delivery.ts";
import { Outgoing } from "../../src/sessions/outgoing.ts";
import { messagesOf } from "../support/run-skein.ts";
import { openRunsInside } from "../support/run-skein-inside.ts";
import { closeAll, withScript } from "../support/skein.ts";

afterEach(closeAll);

test("[LIB18] a channel message that arrives during another turn is answered on its channel", async () => {
  const begun = Promise.withResolvers<void>();
  const open = Promise.withResolvers<string>();
  const gate = defineTool({
    name: "gate",
    description: "Waits.",
    execute: () => {
      begun.resolve();
      return open.promise;
    },
  });
  const sent: unknown[] = [];
  const desk: Channel = {
    id: "desk",
    deliver: async ({ text }, { to }) => ({ at: sent.push({ text, to }) }),
  };
  const opened = await withScript(
    (_, index) => (index === 0 ? { calls: [{ name: "gate" }] } : { text: `Yes. ${index}` }),
    { tools: [gate] },
    { channels: [desk] },
  );
  const session = opened.skein.session({ sessionId: "a" });
  const first = session.send("First");
  await begun.promise;
  const second = session.send("Second", { deliverTo: { channel: "desk", to: "ann" } });
  await opened.until("run.queued", ({ runId }) => runId === second.runId);
  open.resolve("open");
  expect((await first.result).reply).toBe("Yes. 1");
  expect((await second.result).reply).toBe("Yes. 2");
  await opened.until("outbox.delivered");
  expect(sent).toEqual([{ text: "Yes. 2", to: "ann" }]);
});

test("removing a session cuts off its running turn", async () => {
  const begun = Promise.withResolvers<void>();
  const cut = Promise.withResolvers<unknown>();
  const gate = defineTool({
    name: "gate",
    description: "Waits.",
    execute: (_, { signal }) => {
      begun.resolve();
      return new Promise<string>((_resolve, reject) =>
        signal.addEventListener("abort", () => {
          cut.resolve(signal.reason);
          reject(signal.reason);
        }),
      );
    },
  });
  const { skein, reported } = await withScript(
    [{ calls: [{ name: "gate" }] }],
    { tools: [gate] },
    { leaseMs: 3_600_000 },
  );
  const turn = skein.session({ sessionId: "a" }).send("Hello");
  await begun.promise;
  await skein.store.sessions.remove({ agentId: "main" }, "a");
  await cut.promise;
  await expect(turn.result).rejects.toMatchObject({ code: "aborted" });
  expect(reported).toEqual([]);
});

test("[LIB19] unread input of a removed session becomes its sender's dead letter, which is delivered once the session is restored", async () => {
  const begun = Promise.withResolvers<void>();
  const gate = defineTool({
    name: "gate",
    description: "Waits.",
    execute: (_, { signal }) => {
      begun.resolve();
      return new Promise<string>((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
    },
  });
  const { skein, inside, reports } = await openRunsInside({
    script: [{ text: "Yes." }, { calls: [{ name: "gate" }] }, { text: "I am back." }],
    tools: [gate],
  });
  const { store, runs } = inside;
  const until = (type: string, sessionId: string) =>
    new Promise<void>((resolve) =>
      skein.subscribe((event) => void (event.type === type && event.sessionId === sessionId && resolve())),
    );
  const { runId, sessionKey } = await skein.session({ sessionId: "a" }).send("Hello").result;
  const from = (await runs.get(runId))?.session;
  if (from === undefined) throw new Error("there is no such run");
  const target = skein.session({ sessionId: "b" });
  const busy = target.send("Wait");
  busy.result.catch(() => undefined);
  await begun.promise;
  const record = await target.record();
  if (record === null) throw new Error("there is no such session");
  const root = { rootId: runId, hops: 1 };
  const text = "Are you there?";
  await runs.accept(acceptRequest({ id: "d1", from, runId, kind: "send", text, root }, record));
  const isTold = until("entry.appended", "a");
  await store.sessions.remove({ agentId: "main" }, "b");
  await isTold;
  const [note] = (await messagesOf(skein, "a")).filter(({ role }) => role === "custom");
  expect(JSON.stringify(note)).toMatch(
    /agent:main:session:b over session.*no longer exists.*Are you there\?/,
  );
  const [letter] = await skein.outbox({ states: ["dead"] });
  expect(letter).toMatchObject({ session: { key: sessionKey }, runId, text });
  await store.sessions.restore({ agentId: "main" }, "b");
  // The run that wrote the note to the first session might still be closing.
  const isAnswered = until("run.ended", "b");
  await skein.settleOutbox(letter?.outboxId ?? "", "retry");
  await isAnswered;
  expect(JSON.stringify((await messagesOf(skein, "b")).slice(-2))).toMatch(/Are you there.*I am back/);
  expect(await skein.outbox({ states: ["delivered"] })).toHaveLength(1);
  expect(reports).toEqual([]);
  await skein.close({ graceMs: 0 });
});

test("dropping a message during its delivery cuts it off", async () => {
  const begun = Promise.withResolvers<void>();
  const cut = Promise.withResolvers<void>();
  const desk: Channel = {
    id: "desk",
    deliver: ({ signal }) => {
      begun.resolve();
      return new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => {
          cut.resolve();
          reject(signal.reason);
        }),
      );
    },
  };
  const { skein, reported } = await withScript([{ text: "Yes." }], {}, { channels: [desk] });
  await skein.session({ sessionId: "a" }).send("Hello", { deliverTo: { channel: "desk" } }).result;
  await begun.promise;
  const [row] = await skein.outbox();
  await skein.settleOutbox(row?.outboxId ?? "", "drop");
  await cut.promise;
  expect((await skein.outboxRow(row?.outboxId ?? ""))?.state).toBe("dropped");
  expect(reported).toEqual([]);
});

test("[LIB19] a dead letter to a session with an exhausted budget is not retried for a day", async () => {
  const outgoing = new Outgoing(new Map(), { default: "allow", rules: [] });
  const row = { target: { channel: "session", to: "agent:main:session:b" } } as OutboxRow;
  const refusal = budgetExceeded("r1", { limit: "runs", figure: 101, allowed: 100 });
  const { signal } = new AbortController();
  await expect(outgoing.deliver(row, signal, () => Promise.reject(refusal))).rejects.toMatchObject({
    code: "delivery_failed",
    permanent: true,
  });
  await expect(outgoing.deliver(row, signal, () => Promise.reject(new Error("EIO")))).rejects.toThrow("EIO");
});
