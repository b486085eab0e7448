import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks, spawnedBy } from "../../../test/support/run-books.ts";
import type { Awaiting, Claim, Run } from "../contract.ts";

let books: RunBooks;
let waiter: Claim;

beforeEach(async () => {
  books = new RunBooks();
  waiter = await books.running("w");
});

const byRun = (): Awaiting => ({ by: { runId: waiter.run.runId }, until: books.now + 1000 });
const byOwner = (): Awaiting => ({ by: { owner: "them" }, until: books.now + 1000 });

/** A child of the waiter whose first run has started. */
async function awaited(awaitedBy: Awaiting): Promise<Claim> {
  return books.running("c", { ...spawnedBy(waiter.run), awaitedBy });
}

const endIt = (claim: Claim) => books.runs.end(claim.held, { state: "ok", reply: "yes" });
const stands = async ({ run }: Claim) => (await books.runs.replyWait(run.runId))?.state;
const announced = async () => (await books.runs.list({})).filter(({ kind }) => kind === "announce").length;

describe("a reply that a caller waits for", () => {
  test.each([
    ["a run", byRun],
    ["a process", byOwner],
  ])("goes to the caller, and starts nothing else: %s", async (_name, by) => {
    const child = await awaited(by());
    expect(await books.runs.replyWait(child.run.runId)).toEqual({ state: "open", until: books.now + 1000 });
    await endIt(child);
    expect([await stands(child), await announced()]).toEqual(["taken", 0]);
    expect(await books.runs.stopAwaiting(child.run.runId)).toBe("taken");
  });

  test("a sleeping target keeps the waiter waiting", async () => {
    const child = await awaited(byRun());
    await books.accept("g", { startedBy: child.run.runId });
    await books.runs.sleep(child.held, { wakeAt: books.now + 500 });
    expect(await stands(child)).toBe("open");
    books.now += 600;
    await books.runs.sweep();
    const both = [await books.claim(), await books.claim()];
    for (const each of both.filter(({ run }) => run.runId === child.run.runId)) await endIt(each);
    expect([await stands(child), await announced()]).toEqual(["taken", 0]);
  });

  test("repeating the same input does not change who waits", async () => {
    const asked = { ...spawnedBy(waiter.run), idempotencyKey: "k" };
    const run = await books.accept("c", asked);
    await books.accept("c", { ...asked, awaitedBy: byRun() });
    expect(await books.runs.replyWait(run.runId)).toBeNull();
    await books.accept("d", { ...spawnedBy(waiter.run), idempotencyKey: "l", awaitedBy: byRun() });
    await books.accept("d", { ...spawnedBy(waiter.run), idempotencyKey: "l", awaitedBy: byOwner() });
  });

  test("a waiting run keeps its reply wait as long as it asks; a process until its timeout", async () => {
    const one = await awaited(byRun());
    const two = await books.running("d", { ...spawnedBy(waiter.run), awaitedBy: byOwner() });
    books.now += 1001;
    await endIt(one);
    await endIt(two);
    expect([await stands(one), await stands(two)]).toEqual(["taken", "late"]);
    expect(await announced()).toBe(1);
  });

  test("a waiter that leaves, died or has ended gets nothing, and the sequel proceeds", async () => {
    const left = await awaited(byRun());
    expect(await books.runs.stopAwaiting(left.run.runId)).toBe("late");
    const dead = await books.running("d", { ...spawnedBy(waiter.run), awaitedBy: byOwner() });
    books.gone.add("them");
    const ended = await books.running("e", { ...spawnedBy(waiter.run), awaitedBy: byRun() });
    await books.runs.end(waiter.held, { state: "ok" });
    expect(await stands(ended)).toBe("late");
    for (const each of [left, dead, ended]) await endIt(each);
    expect(await Promise.all([left, dead, ended].map(stands))).toEqual(["late", "late", "late"]);
    expect(await announced()).toBe(3);
  });

  test("a waiter whose process was lost still waits, because its run continues", async () => {
    const child = await awaited(byRun());
    await books.runs.lose(waiter.held);
    await endIt(child);
    expect(await stands(child)).toBe("taken");
  });

  test("for merged input, the wait ends with the turn that took it", async () => {
    const turn = await books.running("c");
    const asked = { ...spawnedBy(waiter.run), queueMode: "steer" as const, awaitedBy: byRun() };
    const { runId } = await books.accept("c", asked);
    await books.runs.mergeInput(turn.held, runId);
    expect((await books.runs.replyWait(runId))?.state).toBe("open");
    await endIt(turn);
    expect((await books.runs.replyWait(runId))?.state).toBe("taken");
  });

  test("without a waiter there is nothing to stop, and the reply is delivered as planned", async () => {
    expect(await books.runs.replyWait("unknown")).toBeNull();
    expect(await books.runs.stopAwaiting("unknown")).toBe("late");
  });
});

const steps = fc.array(
  fc.record({
    kind: fc.constantFrom(
      "spawn",
      "spawn",
      "claim",
      "claim",
      "end",
      "abort",
      "lose",
      "sleep",
      "stop",
      "time",
      "gone",
      "wait",
    ),
    which: fc.nat(30),
  }),
  { minLength: 5, maxLength: 50 },
);

/** Children of one waiter, and the events that can happen to them in any order. */
class Story {
  readonly books = new RunBooks({ lanes: { main: 9, subagent: 2, cron: 1, nested: 9 } });
  readonly runs: Run[] = [];
  readonly claims = new Map<string, Claim>();
  readonly said = new Map<string, "taken" | "late">();
  #waiter: Claim | null = null;

  async step(kind: string, which: number): Promise<void> {
    const { books } = this;
    this.#waiter ??= await books.running("w");
    const waiter = this.#waiter;
    const run = this.runs[which % Math.max(1, this.runs.length)];
    const claim = run === undefined ? undefined : this.claims.get(run.runId);
    const isRunning = run !== undefined && (await books.stateOf(run.runId)) === "running";
    if (kind === "spawn") {
      const by = which % 3 === 0 ? { owner: `o${which % 4}` } : { runId: waiter.run.runId };
      const awaitedBy = which % 2 === 0 ? { awaitedBy: { by, until: books.now + 50 } } : {};
      const made = spawnedBy(waiter.run, { maxChildren: 1000 });
      this.runs.push(await books.accept(`c${this.runs.length}`, { ...made, ...awaitedBy }));
    } else if (kind === "claim") {
      const next = await books.runs.claim("me");
      if (next !== null) this.claims.set(next.run.runId, next);
    } else if (kind === "time") {
      books.now += 30;
      await books.runs.sweep();
    } else if (kind === "gone") books.gone.add(`o${which % 4}`);
    else if (kind === "wait" && which % 5 === 0) await books.runs.abort(waiter.run.runId);
    else if (run === undefined) return;
    else if (kind === "stop") {
      const answer = await books.runs.stopAwaiting(run.runId);
      // The first result is final.
      expect(answer).toBe(this.said.get(run.runId) ?? answer);
      this.said.set(run.runId, answer);
    } else if (kind === "abort") await books.runs.abort(run.runId);
    else if (claim === undefined || !isRunning) return;
    else if (kind === "end") await books.runs.end(claim.held, { state: "ok", reply: "r" });
    else if (kind === "lose") await books.runs.lose(claim.held);
    else if (kind === "sleep") await books.runs.sleep(claim.held, { wakeAt: books.now + 40 });
  }

  async check(): Promise<void> {
    const all = await this.books.runs.list({ limit: 1000 });
    for (const { runId } of this.runs) {
      const { endedAt } = all.find((each) => each.runId === runId) as Run;
      const told = all.filter(({ idempotencyKey }) => idempotencyKey === `announce:${runId}`).length;
      const isTaken = (await this.books.runs.replyWait(runId))?.state === "taken";
      expect(told + (isTaken ? 1 : 0)).toBe(endedAt === null ? 0 : 1);
      if (this.said.get(runId) === "late") expect(isTaken).toBe(false);
    }
  }
}

test("[FAM37] in any order of events, an ended run was either taken by a waiter or announced, exactly once", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const story = new Story();
      for (const { kind, which } of all) {
        await story.step(kind, which);
        await story.check();
      }
      await story.books.close();
    }),
    { numRuns: 60 },
  );
});
