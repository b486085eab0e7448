import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks, sessionNamed, spawnedBy } from "../../../test/support/run-books.ts";
import type { AcceptRequest, Claim } from "../contract.ts";

let books: RunBooks;
let parent: Claim;
let children: Claim[];

/** Three children of a parent that has ended without waiting for them. */
beforeEach(async () => {
  books = new RunBooks();
  parent = await books.running("p");
  children = [];
  for (const uid of ["a", "b", "c"]) children.push(await books.running(uid, spawnedBy(parent.run)));
  await books.runs.end(parent.held, { state: "ok" });
});

const endOf = (index: number) => books.runs.end((children[index] as Claim).held, { state: "ok" });
const texts = ({ run, arrivals }: Claim) =>
  [run, ...arrivals].map(({ message }) => ("content" in message ? message.content : null));

describe("announcements within a second", () => {
  test("[FAM25] wait that long for the others, and no longer", async () => {
    await endOf(0);
    expect(await books.runs.claim("me")).toBeNull();
    expect((await books.runs.sweep()).nextAt).toBe(books.now + 1000);
    books.now += 500;
    await endOf(1);
    expect(await books.runs.claim("me")).toBeNull();
    expect(await books.runs.changedByOthers()).toBe(false);
    books.now += 500;
    expect(await books.runs.changedByOthers()).toBe(true);
    expect(texts(await books.claim())).toEqual(["a: ok", "b: ok"]);
    expect(await books.runs.changedByOthers()).toBe(false);
  });

  test("[FAM25] go at once when no other is open, and into one turn, in order", async () => {
    for (const index of [1, 0, 2]) await endOf(index);
    const claim = await books.claim();
    expect(texts(claim)).toEqual(["b: ok", "a: ok", "c: ok"]);
    expect(await books.runs.claim("me")).toBeNull();
    for (const { runId } of claim.arrivals) await books.runs.mergeInput(claim.held, runId);
    await books.runs.end(claim.held, { state: "ok", reply: "thanks" });
    for (const { runId } of claim.arrivals)
      expect(await books.runs.get(runId)).toMatchObject({ state: "merged", outcome: { reply: "thanks" } });
  });

  test("[FAM25] an only child's is not held back", async () => {
    const other = await books.running("q");
    const child = await books.running("d", spawnedBy(other.run));
    await books.runs.end(other.held, { state: "ok" });
    await books.runs.end(child.held, { state: "ok" });
    expect(texts(await books.claim())).toEqual(["d: ok"]);
  });

  test("[FAM25] other input of the session does not wait for them, and they do not join its turn", async () => {
    await endOf(0);
    const asked = await books.running("p");
    expect(asked.arrivals).toEqual([]);
    await endOf(1);
    await endOf(2);
    expect(await books.runs.steerable(asked.held)).toEqual([]);
    await books.runs.end(asked.held, { state: "ok" });
    expect(texts(await books.claim())).toEqual(["a: ok", "b: ok", "c: ok"]);
  });

  test("[FAM25] input with another delivery target or other options gets its own turn", async () => {
    for (const index of [0, 1, 2]) await books.runs.abort(children[index]?.run.runId ?? "");
    const say = (content: string, options: AcceptRequest["options"]) =>
      books.accept("p", {
        kind: "announce",
        arrivalOf: `run ${content}`,
        message: { role: "user", content },
        ...(options === undefined ? {} : { options }),
      });
    const deliverTo = { channel: "desk", to: "ann" };
    await say("one", { deliverTo });
    await say("two", {});
    await say("three", { deliverTo: { to: "ann", channel: "desk" } });
    await say("four", { deliverTo, extraSystemPrompt: "Be brief." });
    await say("five", { deliverTo });
    await books.accept("p", { kind: "announce", options: { deliverTo } });
    const claim = await books.claim();
    expect(texts(claim)).toEqual(["one", "three", "five"]);
  });

  test("[FAM25] an announcement without a run, or one written without a turn, is not batched", async () => {
    const tight = new RunBooks({ limits: { hops: 1, runs: 9, tokens: null, costUsd: null, pingPong: 5 } });
    await tight.accept("p", { kind: "announce" });
    await tight.accept("p", { kind: "announce", arrivalOf: "a" });
    const root = { rootId: "far", hops: 2 };
    await tight.accept("q", { kind: "announce", arrivalOf: "b", root, isDelivery: true });
    await tight.accept("q", { kind: "announce", arrivalOf: "c" });
    const claims = [await tight.claim(), await tight.claim()];
    expect(claims.map(({ run, arrivals }) => [run.isSilent, arrivals.length])).toEqual([
      [true, 0],
      [false, 0],
    ]);
  });

  test("a batch is kept when its owner is lost, and released when the run ends first", async () => {
    for (const index of [0, 1, 2]) await endOf(index);
    await books.runs.lose((await books.claim()).held);
    await books.accept("p", { kind: "announce", arrivalOf: "elsewhere" });
    const again = await books.claim();
    expect(again.how).toBe("recovered");
    expect(texts(again)).toEqual(["a: ok", "b: ok", "c: ok"]);
    await books.runs.end(again.held, { state: "error", code: "model_failed" });
    expect(texts(await books.claim())).toEqual(["b: ok", "c: ok", "hello"]);
  });

  test("a held-back announcement is kept for a run that goes to sleep for it", async () => {
    const sleeper = await books.running("p");
    await endOf(0);
    const [first] = children;
    await books.runs.sleep(sleeper.held, { waitFor: [first?.run.runId ?? ""], wakeAt: books.now + 9000 });
    expect((await books.runs.sweep()).nextAt).not.toBe(books.now + 1000);
    const woken = await books.claim();
    expect([woken.how, woken.arrivals.length]).toEqual(["woken", 1]);
  });

  test("an aborted one, or one whose session is reset, delays nothing", async () => {
    await endOf(0);
    const [held] = await books.runs.pending("p");
    (await books.change(() => books.runs.attendant.reset(sessionNamed("p"), sessionNamed("p2"), false)))();
    expect((await books.runs.pending("p2")).map(({ runId }) => runId)).toEqual([held?.runId]);
    expect(await books.runs.claim("me")).toBeNull();
    books.now += 1000;
    expect((await books.claim()).run.session.uid).toBe("p2");
    await endOf(1);
    const [other] = await books.runs.pending("p");
    await books.runs.abort(other?.runId ?? "");
    books.now += 1000;
    expect(await books.runs.changedByOthers()).toBe(false);
  });
});
