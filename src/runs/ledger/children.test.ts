import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks, sessionNamed, spawnedBy } from "../../../test/support/run-books.ts";
import type { Script } from "../../core/script.ts";
import { queryRows } from "../../core/script.ts";
import type { AcceptRequest, ChildRequest, Claim } from "../contract.ts";

let books: RunBooks;
let parent: Claim;

beforeEach(async () => {
  books = new RunBooks();
  parent = await books.running("p");
});

const key = () => parent.run.session.key;
const labels = async (query = {}) =>
  (await books.runs.children("ann", key(), query)).map(({ label }) => label);

/** A child whose first run has started. */
async function child(
  label: string,
  more: Partial<ChildRequest> = {},
  also: Partial<AcceptRequest> = {},
): Promise<Claim> {
  return books.running(label, { ...spawnedBy(parent.run, { label, ...more }), ...also });
}

const endIt = (claim: Claim) => books.runs.end(claim.held, { state: "ok", reply: "r" });
const due = async () =>
  (await books.runs.childrenToTidy()).map(({ child: { label }, act }) => `${act} ${label}`);

describe("the limit of children", () => {
  test("[FAM19] parallel spawns never exceed the limit, and an end makes room", async () => {
    const asked = Array.from({ length: 6 }, (_, index) =>
      spawnedBy(parent.run, { label: `${index}`, maxChildren: 4 }),
    );
    const settled = await Promise.allSettled(asked.map((each, index) => books.accept(`c${index}`, each)));
    const refused = settled.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(2);
    expect(refused[0]).toMatchObject({
      reason: {
        code: "children_exceeded",
        message: expect.stringMatching(
          /^sessions_spawn has reached max active children for this session \(4\/4\)\./,
        ),
      },
    });
    expect(await books.runs.list({ startedBy: parent.run.runId })).toHaveLength(4);
    expect(await labels()).toHaveLength(4);
    await endIt(await books.claim());
    await books.accept("c9", spawnedBy(parent.run, { maxChildren: 4 }));
  });

  test("[FAM19] repeating a spawn gives the same child, and children of another parent or user do not count", async () => {
    const asked = { ...spawnedBy(parent.run, { maxChildren: 1 }), idempotencyKey: "k" };
    const first = await books.accept("c", asked);
    expect((await books.accept("c", asked)).runId).toBe(first.runId);
    const other = await books.accept("q");
    await books.accept("d", spawnedBy(other, { maxChildren: 1 }));
    const bob = await books.accept("bob/p");
    await books.accept("bob/c", spawnedBy(bob, { maxChildren: 1, parentKey: key() }));
    await expect(books.accept("e", spawnedBy(parent.run, { maxChildren: 1 }))).rejects.toMatchObject({
      code: "children_exceeded",
    });
  });

  test("[FAM19] inside a transaction of the store: nothing is reported before the commit, and a rollback undoes it", async () => {
    const message = { role: "user" as const, content: "go" };
    const request: AcceptRequest = {
      session: sessionNamed("c"),
      kind: "spawn",
      message,
      ...spawnedBy(parent.run),
    };
    books.told();
    const undone = function* (): Script<void> {
      yield* books.runs.acceptWithin(request);
      throw new Error("undone");
    };
    await expect(books.change(undone)).rejects.toThrow("undone");
    expect([await labels(), books.told()]).toEqual([[], []]);
    const { accepted, afterCommit } = await books.change(() => books.runs.acceptWithin(request));
    expect([accepted.isNew, books.told()]).toEqual([true, []]);
    afterCommit();
    expect(books.told()).toEqual(["run.queued", "run.child"]);
  });
});

describe("listing children", () => {
  test("lists the children of a parent, newest first, by open state and end time", async () => {
    const more = {
      mode: "session",
      cleanup: "delete",
      attachments: "/a",
      archiveAfterMs: 5,
      task: "dig",
    } as const;
    const one = await child("one", more);
    await child("two");
    await endIt(one);
    books.now += 100;
    expect(await labels()).toEqual(["two", "one"]);
    expect(await labels({ open: true })).toEqual(["two"]);
    expect(await labels({ open: false })).toEqual(["one"]);
    expect(await labels({ endedSince: books.now })).toEqual(["two"]);
    const [, found] = await books.runs.children("ann", key());
    expect(found).toMatchObject({
      ...more,
      label: "one",
      parentKey: key(),
      tidiedAt: null,
      run: { state: "ok" },
    });
    expect(await books.runs.children(null, key())).toEqual([]);
  });
});

describe("tidying children", () => {
  const gone = { cleanup: "delete" } as const;

  test("[FAM29] removes a child once its announcement is in the parent's session, and only once", async () => {
    const claim = await child("c", gone);
    await endIt(claim);
    expect(await due()).toEqual([]);
    await books.runs.end(parent.held, { state: "ok" });
    const heard = await books.claim();
    expect(heard.run.kind).toBe("announce");
    expect(await due()).toEqual([]);
    await books.runs.markWritten(heard.held);
    expect(await due()).toEqual(["remove c"]);
    await books.runs.markTidied(claim.run.runId);
    expect(await due()).toEqual([]);
    expect((await books.runs.children("ann", key()))[0]?.tidiedAt).toBe(books.now);
  });

  test("[FAM29] removes a child once the waiter that took the result has ended, or had time to write it", async () => {
    const awaitedBy = { by: { runId: parent.run.runId }, until: books.now + 10 };
    for (const label of ["c", "d"]) await endIt(await child(label, gone, { awaitedBy }));
    expect(await due()).toEqual([]);
    books.now += 60_000;
    expect((await due()).toSorted()).toEqual(["remove c", "remove d"]);
    books.now -= 60_000;
    await books.runs.end(parent.held, { state: "ok" });
    expect(await due()).toHaveLength(2);
  });

  test("[FAM29] a child whose result was not delivered is not removed; without a target, the dead letter has the result", async () => {
    const { child: asked } = spawnedBy(parent.run, { ...gone, label: "mute" });
    await endIt(
      await books.running("mute", { kind: "spawn", ...(asked === undefined ? {} : { child: asked }) }),
    );
    const claim = await child("c", gone);
    books.removed.add("p");
    await endIt(claim);
    expect(await due()).toEqual(["remove c"]);
  });

  test("[FAM29] a kept child is archived after its retention time; a persistent session is not", async () => {
    const archiveAfterMs = 1000;
    await endIt(await child("kept", { archiveAfterMs }));
    await endIt(await child("stays", { archiveAfterMs, mode: "session" }));
    await endIt(await child("for ever"));
    await child("open", { archiveAfterMs });
    books.now += 999;
    expect(await due()).toEqual([]);
    books.now += 1;
    expect(await due()).toEqual(["archive kept"]);
    await books.accept("kept", { kind: "send" });
    expect(await due()).toEqual([]);
  });

  test("[FAM29] a child archived after its run would be forgotten is known until then", async () => {
    const day = 24 * 3_600_000;
    await endIt(await child("late", { archiveAfterMs: 40 * day }));
    await endIt(await child("never"));
    books.now += 35 * day;
    await books.runs.sweep();
    expect(await labels()).toEqual(["late"]);
    expect(await due()).toEqual([]);
    books.now += 6 * day;
    expect(await due()).toEqual(["archive late"]);
    for (const { child: tidied } of await books.runs.childrenToTidy())
      await books.runs.markTidied(tidied.run.runId);
    await books.runs.sweep();
    expect(await labels()).toEqual([]);
  });

  test("[FAM29] children that cannot be tidied do not block others", async () => {
    const archiveAfterMs = 1;
    for (let at = 0; at < 130; at += 1) {
      const request = spawnedBy(parent.run, { label: `c${at}`, archiveAfterMs, maxChildren: 1000 });
      await endIt(await books.running(`c${at}`, { ...request, root: { rootId: `r${at}`, hops: 0 } }));
    }
    books.now += 1;
    const seen = new Set<string>();
    for (let look = 0; look < 50; look += 1) for (const one of await due()) seen.add(one);
    expect(seen.size).toBe(130);
  });

  test("is forgotten with its run, and by a purge", async () => {
    await endIt(await child("old", {}, { awaitedBy: { by: { owner: "me" }, until: 0 } }));
    await child("purged");
    await books.runs.bindThread("ann", { channel: "desk", threadId: "1" }, sessionNamed("purged").key);
    const moved = await child("moved");
    await books.runs.bindThread("ann", { channel: "desk", threadId: "2" }, moved.run.session.key);
    await books.change(() => books.runs.attendant.purge(["moved"]));
    expect(await books.runs.threadKey("ann", { channel: "desk", threadId: "2" })).toBe(moved.run.session.key);
    books.removed.add("purged");
    await books.change(() => books.runs.attendant.purge(["purged"]));
    expect(await labels()).toEqual(["old"]);
    expect(await books.runs.threadKey("ann", { channel: "desk", threadId: "1" })).toBeNull();
    books.now += 31 * 24 * 3_600_000;
    await books.runs.sweep();
    for (const table of ["children", "run_replies"])
      expect(await books.runs.read(() => queryRows(`SELECT * FROM ${table}`))).toEqual([]);
  });
});
