import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RunBooks } from "../../test/support/run-books.ts";
import { soon } from "../../test/support/soon.ts";
import type { Later } from "../core/concurrency.ts";
import type { SkeinEvent } from "../core/events.ts";
import { EventBus } from "../core/events.ts";
import { textOf } from "../core/messages.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { Run, RunOptions } from "../runs/contract.ts";
import { planSequel } from "../runs/plan-sequel.ts";
import type { SessionRecord } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { relayProgress } from "./relay-progress.ts";
import { RunWatcher } from "./run-watcher.ts";

/** A real run ledger, a fixed clock, and timers that the test fires. */
class World {
  readonly bus = new EventBus();
  readonly books = new RunBooks({ emit: this.bus.emit, planSequel });
  readonly store = createMemoryStore();
  readonly reports: unknown[] = [];
  readonly timers = new Set<{ at: number; act(): void }>();
  readonly stop: () => void;

  constructor() {
    const { bus, books, store, reports } = this;
    const clock = { now: () => books.now };
    const watcher = new RunWatcher(books.runs, bus, clock);
    const after: Later = (ms, act) => {
      const timer = { at: books.now + ms, act };
      this.timers.add(timer);
      return () => void this.timers.delete(timer);
    };
    this.stop = relayProgress(
      {
        bus,
        store,
        runs: books.runs,
        clock,
        owner: "me",
        watcher,
        report: (error) => void reports.push(error),
      },
      after,
    );
  }

  pass(ms: number): void {
    this.books.now += ms;
    for (const timer of [...this.timers].filter(({ at }) => at <= this.books.now)) {
      this.timers.delete(timer);
      timer.act();
    }
  }

  async session(key: string): Promise<SessionRecord> {
    const session = await this.store.sessions.create(
      { userId: "ann", agentId: key.split(":")[1] ?? "" },
      { key, cwd: "/" },
    );
    this.books.sessions.set(session.uid, sessionRefOf(session));
    return session;
  }

  /** Starts a child in this process. */
  async child(parent: SessionRecord, options: RunOptions = { streamTo: "parent" }): Promise<Run> {
    const session = sessionRefOf(await this.session("agent:codex:acp:s1"));
    const { key, sessionId } = parent;
    const sequel = {
      type: "child",
      parent: { key, sessionId },
      childKey: session.key,
      task: "Count",
      label: "pages",
    } as const;
    const root = { rootId: "root", hops: 1 };
    const { run } = await this.books.running(session.uid, {
      session,
      kind: "spawn",
      root,
      options: { sequel, ...options },
    });
    this.tell(run, { type: "run.started", attempt: 1, model: null });
    return run;
  }

  tell({ runId, session }: Run, event: object): void {
    const { userId, key: sessionKey, sessionId } = session;
    this.bus.emit({ at: this.books.now, userId, sessionKey, sessionId, runId, ...event } as SkeinEvent);
  }

  says(run: Run, delta: string): void {
    this.tell(run, { type: "run.delta", kind: "text", delta });
  }

  async notes({ uid }: SessionRecord): Promise<readonly Run[]> {
    return (await this.books.runs.list({ sessionUid: uid }))
      .filter(({ kind }) => kind === "note")
      .toReversed();
  }

  async texts(parent: SessionRecord): Promise<readonly string[]> {
    return (await this.notes(parent)).map(({ message }) =>
      "content" in message ? textOf(message.content as never) : "",
    );
  }

  /** Writes the pending note. */
  async write(): Promise<void> {
    const claim = await this.books.claim();
    expect(claim.run).toMatchObject({ kind: "note", isSilent: true });
    await this.books.runs.end(claim.held, { state: "ok" });
  }
}

let world: World;
let parent: SessionRecord;

beforeEach(async () => {
  world = new World();
  parent = await world.session("agent:main:main");
});

afterEach(() => {
  world.stop();
  expect(world.timers.size).toBe(0);
  expect(world.reports).toEqual([]);
});

/** Resolves when everything that the relay started has finished. */
async function allDone(): Promise<void> {
  for (let round = 0; round < 5; round++) {
    await new Promise<void>((done) => setImmediate(done));
    await world.store.sessions.find({ userId: "ann" }, { by: "key", key: "agent:main:session:other" });
    await world.books.accept("other");
  }
}
const planned = (count = 1) => soon(() => world.timers.size).toBe(count);

describe("streamTo parent", () => {
  test("writes the child's text and actions to the parent's session as free notes", async () => {
    const run = await world.child(parent);
    await planned();
    world.says(run, "Reading the book.");
    world.tell(run, { type: "run.tool", phase: "call", toolCallId: "1", toolName: "read" });
    world.tell(run, { type: "run.delta", kind: "thinking", delta: "hidden" });
    world.pass(2500);
    await soon(() => world.texts(parent)).toEqual(["[Progress of pages] Reading the book. [tool read]"]);
    const [note] = await world.notes(parent);
    expect(note).toMatchObject({
      isSilent: true,
      root: { rootId: "root" },
      provenance: { sourceSessionKey: run.session.key },
    });
    expect((await world.books.runs.budget("root"))?.runs).toBe(1);
    await world.write();
    await planned();
    world.says(run, "Half of it.");
    world.pass(2500);
    await soon(() => world.texts(parent)).toHaveLength(2);
    await world.write();
    await planned();
    world.pass(60_000);
    await soon(async () => (await world.texts(parent))[2]).toBe("[Progress of pages] Silent for 60 seconds");
    await world.write();
  });

  test("one note waits at a time, however long", async () => {
    const run = await world.child(parent);
    await planned();
    world.says(run, "one");
    world.pass(2500);
    await soon(() => world.texts(parent)).toHaveLength(1);
    for (const word of ["two ", "three"]) {
      world.says(run, word);
      world.pass(70_000);
    }
    expect(await world.texts(parent)).toHaveLength(1);
    await world.write();
    await planned();
    world.pass(0);
    await soon(() => world.texts(parent)).toEqual([
      "[Progress of pages] one",
      "[Progress of pages] two three",
    ]);
    await world.write();
  });

  test("nothing follows the end: notes that are not written by then are dropped", async () => {
    const run = await world.child(parent);
    await planned();
    world.says(run, "one");
    world.pass(2500);
    await soon(() => world.texts(parent)).toHaveLength(1);
    world.says(run, "two");
    await world.books.runs.end({ runId: run.runId, fence: run.fence }, { state: "ok", reply: "done" });
    await soon(async () => (await world.notes(parent))[0]?.state).toBe("aborted");
    expect(world.timers.size).toBe(0);
    world.says(run, "three");
    world.pass(70_000);
    expect(await world.texts(parent)).toHaveLength(1);
    const claim = await world.books.claim();
    expect(claim.run.kind).toBe("announce");
  });

  test.each<[string, RunOptions]>([
    ["it was not requested", { streamTo: undefined as never }],
    ["it has no parent", { sequel: undefined as never, streamTo: "parent" }],
  ])("nothing is reported if %s", async (_, options) => {
    const run = await world.child(parent, options);
    world.says(run, "one");
    await allDone();
    world.pass(70_000);
    await allDone();
    expect(world.timers.size).toBe(0);
    expect(await world.notes(parent)).toEqual([]);
  });

  test("a process that has lost the run reports nothing more", async () => {
    const run = await world.child(parent);
    await planned();
    await world.books.runs.release({ runId: run.runId, fence: run.fence });
    world.pass(60_000);
    await allDone();
    world.says(run, "one");
    expect(world.timers.size).toBe(0);
    expect(await world.notes(parent)).toEqual([]);
  });

  test("a removed parent gets no announcement", async () => {
    const run = await world.child(parent);
    await planned();
    await world.store.sessions.remove({ userId: "ann" }, parent.sessionId);
    world.says(run, "one");
    world.pass(2500);
    await allDone();
    expect(world.timers.size).toBe(0);
    expect(await world.notes(parent)).toEqual([]);
  });
});
