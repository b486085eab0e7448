import { describe, expect, test } from "vitest";
import { FakeSession, key } from "../../../test/support/acp-fake-session.ts";
import type { EventStream, ReceivedEvent } from "../../protocol/calls.ts";
import { SharedStream } from "./pending-approvals.ts";
import { spawnedCall } from "./permission-requests.ts";

const child = "agent:main:subagent:one";
const grandchild = "agent:other:subagent:two";
const acpChild = "agent:codex:acp:three";
const allow = { outcome: { outcome: "selected", optionId: "allow" } } as const;

function family(): FakeSession {
  const fake = new FakeSession();
  fake.others.set(child, { spawnedBy: key, label: "mender" });
  fake.others.set(grandchild, { spawnedBy: child });
  fake.others.set("agent:main:main", {});
  fake.others.set("agent:main:subagent:theirs", { spawnedBy: "agent:main:main" });
  fake.others.set("agent:main:subagent:orphan", { spawnedBy: "agent:main:session:gone" });
  fake.others.set("agent:main:subagent:round", { spawnedBy: "agent:main:subagent:about" });
  fake.others.set("agent:main:subagent:about", { spawnedBy: "agent:main:subagent:round" });
  return fake;
}

async function opened(fake: FakeSession) {
  const live = await fake.open();
  live.begin();
  await expect.poll(() => fake.count("approvals.list")).toBe(2);
  return live;
}

/** Waits until all work in progress in this process is done. */
async function idle(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate);
}

const resolved = (fake: FakeSession) =>
  fake.called.flatMap(([method, { approvalId, answer }]) =>
    method === "approvals.resolve" ? [`${approvalId} ${answer}`] : [],
  );
const titles = (fake: FakeSession) => fake.asked.map(({ title }) => title);

describe("approval requests of spawned sessions", () => {
  test("[AAG40] are shown in the parent's editor at any depth, each with its own ID and name", async () => {
    const fake = family();
    fake.permit = async () => allow;
    const live = await opened(fake);
    fake.question("a1", { sessionKey: child, toolCallId: "c" });
    fake.question("a2", { sessionKey: grandchild, toolCallId: "c" });
    await expect.poll(() => resolved(fake)).toEqual(["a1 approved", "a2 approved"]);
    expect(titles(fake)).toEqual(["mender: pay", `${grandchild}: pay`]);
    const ids = [`${child}/a1`, `${grandchild}/a2`];
    expect(fake.asked.map(({ toolCallId }) => toolCallId)).toEqual(ids);
    expect(fake.calls().sort()).toEqual(ids.flatMap((id) => [`${id} completed`, `${id} pending`]));
    live.close();
  });

  test.each([
    ["without a lineage", { sessionKey: "agent:main:main" }],
    ["of another lineage", { sessionKey: "agent:main:subagent:theirs" }],
    ["whose spawner is gone", { sessionKey: "agent:main:subagent:orphan" }],
    ["whose lineage is cyclic", { sessionKey: "agent:main:subagent:round" }],
    ["that does not exist", { sessionKey: "agent:main:subagent:nobody" }],
    ["of another user, under the same key", { sessionKey: child, userId: "bob" }],
  ])("[AAG14] are not asked, reported or listed for a session %s, in any mode", async (_, fields) => {
    const fake = family();
    fake.question("a0", fields, false);
    const live = await opened(fake);
    fake.question("a1", fields);
    live.permissions.mode = "allow";
    fake.question("a2", fields);
    fake.question("last", { sessionKey: child });
    await expect.poll(() => resolved(fake)).toEqual(["last approved"]);
    await idle();
    expect([fake.asked, fake.told, fake.reported]).toEqual([[], [], []]);
    live.close();
  });

  test.each([
    ["allow", "approved"],
    ["deny", "denied"],
  ] as const)("[AAG40] are answered at once in mode %s", async (mode, answer) => {
    const fake = family();
    const live = await opened(fake);
    live.permissions.mode = mode;
    fake.question("a1", { sessionKey: child });
    await expect.poll(() => resolved(fake)).toEqual([`a1 ${answer}`]);
    expect([fake.asked, fake.calls()]).toEqual([[], []]);
    live.close();
  });

  test.each([
    ["approved", "completed"],
    ["denied", "failed"],
    ["expired", "failed"],
  ])("[AAG42] are withdrawn when they are %s elsewhere, and the call ends", async (answer, status) => {
    const fake = family();
    fake.permit = () =>
      new Promise((_, reject) => fake.asked.at(-1)?.signal.addEventListener("abort", reject));
    const live = await opened(fake);
    fake.question("a1", { sessionKey: child });
    await expect.poll(() => fake.asked.length).toBe(1);
    fake.emit("approval.resolved", { sessionKey: child, approvalId: "a1", answer });
    await expect.poll(() => fake.calls()).toEqual([`${child}/a1 pending`, `${child}/a1 ${status}`]);
    expect(fake.asked[0]?.signal.aborted).toBe(true);
    expect([resolved(fake), fake.reported]).toEqual([[], []]);
    live.close();
  });

  test("[AAG42] that are pending when the session is opened, or after a gap, are asked once, and the rest are withdrawn", async () => {
    const fake = family();
    // Listed approvals include the user even if the token belongs to that user.
    fake.question("a1", { sessionKey: child, userId: "ann" }, false);
    const live = await opened(fake);
    await expect.poll(() => fake.asked.length).toBe(1);
    fake.question("own");
    await expect.poll(() => fake.asked.length).toBe(2);
    fake.approvals.shift();
    fake.question("a2", { sessionKey: grandchild }, false);
    fake.emit("gap", { after: 1, upTo: 2 });
    await expect.poll(() => fake.asked.length).toBe(3);
    await idle();
    expect(fake.asked.map(({ signal }) => signal.aborted)).toEqual([true, false, false]);
    expect(titles(fake)).toEqual(["mender: pay", "pay", `${grandchild}: pay`]);
    live.close();
  });

  test.each(["run.resumed", "run.ended"])(
    "[AAG42] that another process answered are withdrawn by %s of the run",
    async (event) => {
      const fake = family();
      const live = await opened(fake);
      fake.question("a1", { sessionKey: child, runId: "r7" });
      fake.question("a2", { sessionKey: child, runId: "r7" });
      await expect.poll(() => fake.asked.length).toBe(2);
      fake.approvals.shift();
      fake.emit(event, { sessionKey: child, runId: "r8" });
      fake.emit(event, { sessionKey: child, runId: "r7" });
      await expect.poll(() => fake.asked.map(({ signal }) => signal.aborted)).toEqual([true, false]);
      expect(fake.count("approvals.list")).toBe(3);
      live.close();
    },
  );

  test("[AAG42] that cannot be looked up are reported, and the next one is asked", async () => {
    const fake = family();
    const live = await opened(fake);
    fake.before = (method, params) => {
      if (method === "sessions.get" && params.key === grandchild) throw new Error("the disk is gone");
    };
    fake.question("a1", { sessionKey: grandchild });
    fake.question("a2", { sessionKey: child });
    await expect.poll(() => titles(fake)).toEqual(["mender: pay"]);
    expect(fake.reported).toHaveLength(1);
    live.close();
  });

  test("[AAG42] are neither asked nor answered for a disconnected editor", async () => {
    const fake = family();
    const live = await opened(fake);
    fake.question("a1", { sessionKey: child });
    await expect.poll(() => fake.asked.length).toBe(1);
    fake.before = (method) => (method === "sessions.get" ? live.close() : undefined);
    fake.question("a2", { sessionKey: child });
    await expect.poll(() => fake.asked[0]?.signal.aborted).toBe(true);
    fake.question("a3", { sessionKey: child });
    await idle();
    expect([fake.asked.length, resolved(fake), fake.calls()]).toEqual([1, [], [`${child}/a1 pending`]]);
  });
});

describe("the title of an approval request", () => {
  const asked = { approvalId: "a", toolCallId: "c", toolName: "edit", arguments: { title: "Edit a.txt" } };

  test.each([
    [{ key: acpChild, label: "mender" }, asked, "mender: Edit a.txt"],
    [{ key: acpChild }, asked, `${acpChild}: Edit a.txt`],
    [
      { key: acpChild, label: "mender" },
      { ...asked, arguments: { title: " " } },
      'mender: edit {"title":" "}',
    ],
    [{ key: child, label: "mender" }, asked, 'mender: edit {"title":"Edit a.txt"}'],
  ])("[AAG40] %j", (asker, question, title) => {
    expect(spawnedCall(question, asker)).toMatchObject({ title, kind: "edit", toolCallId: `${asker.key}/a` });
  });
});

/** Returns streams whose events the test emits. */
function sources() {
  const opened: { push(received: ReceivedEvent): void; end(error?: Error): void; isClosed: boolean }[] = [];
  const open = (): EventStream => {
    const { readable, writable } = new TransformStream<ReceivedEvent, ReceivedEvent>(undefined, {
      highWaterMark: Number.POSITIVE_INFINITY,
    });
    const writer = writable.getWriter();
    const one = {
      push: (received: ReceivedEvent) => void writer.write(received),
      end: (error?: Error) =>
        void (error === undefined ? writer.close() : writer.abort(error)).catch(() => 0),
      isClosed: false,
    };
    opened.push(one);
    const close = () => {
      one.isClosed = true;
      one.end();
    };
    return { ready: Promise.resolve(), close, [Symbol.asyncIterator]: () => readable.values() };
  };
  return { opened, open };
}

const event = (seq: number) => ({ event: "run.ended", payload: {}, seq }) as unknown as ReceivedEvent;
const take = async (stream: EventStream, count: number) => {
  const seen: number[] = [];
  for await (const { seq } of stream) if (seen.push(seq) === count) break;
  return seen;
};

test("all readers share one stream, which ends with the last reader", async () => {
  const { opened, open } = sources();
  const shared = new SharedStream(open);
  const [one, other] = [shared.subscribe(), shared.subscribe()];
  opened[0]?.push(event(1));
  expect([await take(one, 1), await take(other, 1)]).toEqual([[1], [1]]);
  const late = shared.subscribe();
  opened[0]?.push(event(2));
  expect(await take(late, 1)).toEqual([2]);
  one.close();
  other.close();
  expect([opened.length, opened[0]?.isClosed]).toEqual([1, false]);
  late.close();
  expect(opened[0]?.isClosed).toBe(true);
  shared.subscribe();
  expect(opened).toHaveLength(2);
});

test("a slow reader gets a gap, and a failing stream fails for all readers", async () => {
  const { opened, open } = sources();
  const shared = new SharedStream(open);
  const [quick, slow] = [shared.subscribe(), shared.subscribe()];
  const heard = take(quick, 1001);
  for (let seq = 1; seq <= 1001; seq++) opened[0]?.push(event(seq));
  expect(await heard).toHaveLength(1001);
  expect(await firstOf(slow)).toMatchObject({ event: "gap", seq: 1001 });
  opened[0]?.end(new Error("cut off"));
  await expect(take(quick, 1)).rejects.toThrow("cut off");
  await expect(take(slow, 1)).rejects.toThrow("cut off");
});

async function firstOf(stream: EventStream): Promise<ReceivedEvent | null> {
  for await (const each of stream) return each;
  return null;
}
