import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks, sessionNamed, spawnedBy } from "../../../test/support/run-books.ts";
import type { Script } from "../../core/script.ts";
import type { Claim, Run } from "../contract.ts";

let books: RunBooks;
let parent: Claim;

beforeEach(async () => {
  books = new RunBooks();
  parent = await books.running("p");
  await books.runs.end(parent.held, { state: "ok" });
});

const spawn = (uid: string) => books.accept(uid, spawnedBy(parent.run));
const announcements = (runs: readonly Run[]) => runs.filter(({ kind }) => kind === "announce");
const told = async (uid = "p") =>
  announcements(await books.runs.list({ sessionUid: uid })).map(
    ({ message }) => "content" in message && message.content,
  );

describe("ending a run", () => {
  test("[FAM28] by its owner: the sequel exists together with the end, and once", async () => {
    const run = await spawn("c");
    const claim = await books.claim();
    await books.runs.end(claim.held, { state: "ok", reply: "done" });
    await books.runs.end(claim.held, { state: "ok", reply: "done" });
    expect(await told()).toEqual(["c: ok done"]);
    expect(announcements(await books.runs.list({}))[0]?.idempotencyKey).toBe(`announce:${run.runId}`);
  });

  test.each([
    ["an abort in the queue", async (run: Run) => void (await books.runs.abort(run.runId)), "aborted"],
    [
      "an abort that its owner notices too late",
      async (run: Run) => {
        const claim = await books.claim();
        await books.runs.abort(run.runId);
        await books.runs.end(claim.held, { state: "ok" });
      },
      "aborted",
    ],
    [
      "an abort while asleep",
      async (run: Run) => {
        const claim = await books.claim();
        await books.accept("grandchild", { startedBy: run.runId });
        await books.runs.sleep(claim.held, { wakeAt: books.now + 1000 });
        await books.runs.abort(run.runId);
      },
      "aborted",
    ],
    [
      "the fourth loss of its owner",
      async () => {
        for (let times = 0; times < 4; times++) await books.runs.lose((await books.claim()).held);
      },
      "error",
    ],
    [
      "its deadline, while it has no owner",
      async () => {
        await books.runs.release((await books.claim()).held);
        books.now += 3_600_001;
        await books.runs.sweep();
      },
      "timeout",
    ],
    [
      "a missing session",
      async () => {
        books.removed.add("c");
        expect((await books.claim()).run.kind).toBe("announce");
      },
      "error",
    ],
    [
      "the removal of its session",
      async () => {
        await books.claim();
        (await books.change(() => books.runs.attendant.remove(sessionNamed("c"), null)))();
      },
      "aborted",
    ],
  ])("[FAM28] %s", async (_name, end, state) => {
    const run = await spawn("c");
    await end(run);
    expect((await books.runs.get(run.runId))?.outcome?.state).toBe(state);
    expect(await told()).toEqual([`c: ${state}`]);
  });

  test("[FAM28] by the budget, when it wakes", async () => {
    const tight = new RunBooks({ limits: { hops: 8, runs: 100, tokens: 10, costUsd: null, pingPong: 5 } });
    const starter = await tight.running("p");
    await tight.runs.end(starter.held, { state: "ok" });
    await tight.accept("c", spawnedBy(starter.run));
    const child = await tight.claim();
    const other = await tight.accept("g", { startedBy: child.run.runId, root: child.run.root });
    await tight.runs.sleep(child.held, { wakeAt: tight.now + 1000 });
    const busy = await tight.claim();
    expect(busy.run.runId).toBe(other.runId);
    const usage = { input: 20, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 20 };
    await expect(tight.runs.charge(busy.held, usage)).rejects.toMatchObject({ code: "budget_exceeded" });
    await tight.runs.end(busy.held, { state: "ok" });
    const [said] = announcements(await tight.runs.list({ sessionUid: "p" }));
    expect(said).toMatchObject({ message: { content: "c: error" }, isSilent: true });
  });

  test("[FAM28] merged input starts its own sequel, with the shared outcome", async () => {
    const turn = await books.running("c");
    const more = await books.accept("c", { ...spawnedBy(parent.run), queueMode: "steer" });
    await books.runs.mergeInput(turn.held, more.runId);
    expect(await told()).toEqual([]);
    await books.runs.end(turn.held, { state: "ok", reply: "both" });
    expect(await told()).toEqual(["c: ok both"]);
  });

  test("[FAM28] a run sleeping for it finds its message, and wakes once", async () => {
    const sleeper = await books.running("s");
    await books.accept("c", spawnedBy(sleeper.run));
    await books.runs.sleep(sleeper.held, { wakeAt: books.now + 1000 });
    const child = await books.claim();
    await books.runs.end(child.held, { state: "ok", reply: "found" });
    const woken = await books.claim();
    expect(woken).toMatchObject({ how: "woken", run: { runId: sleeper.run.runId }, stillOpen: [] });
    expect(woken.arrivals.map(({ message }) => message)).toEqual([{ role: "user", content: "c: ok found" }]);
  });

  test.each([
    ["ends it too", null, ["run.ended", "run.ended"]],
    ["wakes it", { rootId: "another", hops: 0 }, ["run.ended", "run.queued"]],
  ])(
    "[FAM28] two sleeping runs woken by one sweep, where the end of the first %s",
    async (_name, root, expected) => {
      const tight = new RunBooks({ limits: { hops: 8, runs: 100, tokens: 10, costUsd: null, pingPong: 5 } });
      const outer = await tight.running("s");
      await tight.accept("c", { ...spawnedBy(outer.run), ...(root === null ? {} : { root }) });
      await tight.runs.sleep(outer.held, { wakeAt: tight.now + 1000 });
      const inner = await tight.claim();
      await tight.accept("g", { startedBy: inner.run.runId, root: inner.run.root });
      const usage = { input: 20, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 20 };
      await tight.runs.charge(inner.held, usage).catch(() => undefined);
      await tight.runs.sleep(inner.held, { wakeAt: tight.now + 500 });
      tight.now += 1000;
      tight.events.splice(0);
      await tight.runs.sweep();
      const ofBoth = [inner, outer].flatMap(({ run: { runId } }) =>
        tight.events.flatMap((event) =>
          event.runId === runId && event.type !== "run.child" ? [event.type] : [],
        ),
      );
      expect(ofBoth).toEqual(expected);
      expect(announcements(await tight.runs.list({}))).toHaveLength(1);
    },
  );

  test("[FAM28] an outcome is on disk before others are notified", async () => {
    const syncs: boolean[] = [];
    const { db } = books;
    let isUnsynced = false;
    let made = 0;
    const watched = new RunBooks({
      ledger: {
        sql: (text) => db.sql(text),
        run: (text, ...values) => {
          if (text.includes("SET state = ?, outcome = ?")) syncs.push(!isUnsynced);
          return db.run(text, ...values);
        },
        exclusively: (act) => db.exclusively(act),
        changeMark: () => db.changeMark(),
        unsynced: (act) => {
          isUnsynced = true;
          const result = db.unsynced(act);
          isUnsynced = false;
          return result;
        },
      },
      newId: () => `watched-${++made}`,
    });
    const plain = await watched.running("x");
    const child = await watched.running("c", spawnedBy(parent.run));
    const sent = await watched.accept("x", { ...spawnedBy(parent.run), queueMode: "steer" });
    await watched.runs.end(child.held, { state: "ok" });
    await watched.runs.mergeInput(plain.held, sent.runId);
    await watched.runs.end(plain.held, { state: "ok" });
    await watched.runs.end((await watched.running("y")).held, { state: "ok" });
    const late = await watched.running("z", spawnedBy(parent.run));
    await watched.runs.release(late.held);
    watched.now += 3_600_001;
    await watched.runs.sweep();
    expect(syncs).toEqual([true, true, false, true]);
  });

  test("[FAM28] an end that is rolled back has started nothing", async () => {
    const run = await spawn("c");
    const undone = function* (): Script<void> {
      yield* books.runs.attendant.remove(sessionNamed("c"), null);
      throw new Error("undone");
    };
    await expect(books.change(undone)).rejects.toThrow("undone");
    expect(await books.stateOf(run.runId)).toBe("queued");
    expect(await told()).toEqual([]);
  });
});

describe("the target of a sequel", () => {
  const sequelTo = (key: string) =>
    ({ type: "child", childKey: "x", task: "t", parent: { key, sessionId: "q" } }) as const;
  const endOf = async (key: string) => {
    const run = await books.running("c", { options: { sequel: sequelTo(key) } });
    await books.runs.end(run.held, { state: "ok", reply: "r" });
    return run.run;
  };

  test("[ATK14] messages for a removed sub-agent go to the session that spawned it", async () => {
    await endOf("agent:main:subagent:p:gone");
    expect(await told("p")).toEqual(["c: ok r"]);
  });

  test("[ATK14] the spawning session is found by its key, and may have been reset since", async () => {
    const parent = await books.running("p");
    const request = spawnedBy(parent.run, { label: "gone" });
    await books.running("gone", request);
    books.removed.add("gone");
    const spawnId = request.child?.spawnId ?? "";
    await endOf(`agent:main:subagent:before-the-reset:${spawnId}`);
    expect(await told("p")).toContain("c: ok r");
  });

  test("[ATK14] without any target it becomes a dead letter of the run's own session", async () => {
    const run = await endOf("agent:main:session:nobody");
    const [letter, ...more] = await books.runs.outbox.list({});
    expect(more).toEqual([]);
    expect(letter).toMatchObject({
      state: "queued",
      text: "c: ok r",
      runId: run.runId,
      target: { channel: "session", to: "agent:main:session:nobody" },
      session: { uid: "c" },
      idempotencyKey: `announce:${run.runId}`,
    });
  });

  test("[ATK14] a session that is being removed gets nothing more, and its letter is dead", async () => {
    const run = await books.accept("c", { options: { sequel: sequelTo(sessionNamed("c").key) } });
    (await books.change(() => books.runs.attendant.remove(sessionNamed("c"), null)))();
    expect((await books.runs.list({ sessionUid: "c" })).map(({ runId }) => runId)).toEqual([run.runId]);
    expect(await books.runs.outbox.list({})).toMatchObject([{ state: "dead", text: "c: aborted" }]);
  });

  test("[ATK14] sessions of another user are ignored", async () => {
    const bob = sessionNamed("bob/p2");
    books.sessions.set(bob.uid, bob);
    await endOf(bob.key);
    expect(await books.runs.outbox.list({})).toHaveLength(1);
    expect(await books.runs.list({ sessionUid: bob.uid })).toEqual([]);
  });

  test("between unrelated sessions it counts as a message of the pair; beyond the limit it is written without a turn", async () => {
    const tight = new RunBooks({ limits: { hops: 8, runs: 100, tokens: null, costUsd: null, pingPong: 1 } });
    const asker = await tight.running("a");
    const { key, sessionId } = asker.run.session;
    const target = { key: sessionNamed("t").key, sessionId: "t" };
    const terms = { asker: { key, sessionId }, target, request: "?", turns: 5 };
    const options = { sequel: { type: "reply" as const, ...terms } };
    const asked = { kind: "send" as const, root: asker.run.root, options };
    for (const reply of ["one", "two"]) {
      const claim = await tight.running("t", asked);
      await tight.runs.end(claim.held, { state: "ok", reply });
    }
    const back = (await tight.runs.list({ sessionUid: "a" })).filter(({ kind }) => kind === "ping_pong");
    expect(back.map(({ isSilent, lane }) => [isSilent, lane])).toEqual([
      [true, "nested"],
      [false, "nested"],
    ]);
  });
});

describe("notifications about a child", () => {
  test("go to the run that spawned it, and to no other", async () => {
    const starter = await books.running("s");
    books.events.splice(0);
    const child = await books.accept("c", spawnedBy(starter.run));
    const claim = await books.claim();
    await books.accept("g", { startedBy: child.runId });
    await books.runs.sleep(claim.held, { wakeAt: books.now + 1000 });
    await books.runs.abort(child.runId);
    const heard = books.events.flatMap((event) =>
      event.type === "run.child"
        ? [[event.runId, event.sessionKey, event.childRunId, event.childSessionKey, event.state]]
        : [],
    );
    const about = [starter.run.runId, starter.run.session.key, child.runId, child.session.key];
    expect(heard).toEqual(["queued", "running", "sleeping", "aborted"].map((state) => [...about, state]));
  });
});
