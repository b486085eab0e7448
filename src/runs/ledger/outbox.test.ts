import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks, sessionNamed } from "../../../test/support/run-books.ts";

let books: RunBooks;
beforeEach(() => {
  books = new RunBooks();
});
const request = (idempotencyKey: string) => ({
  session: sessionNamed("ann/s"),
  runId: null,
  target: { channel: "webhook", to: "x" },
  text: "hello",
  idempotencyKey,
});

describe("the outbox", () => {
  test("lists the newest rows first, at most a thousand", async () => {
    const { outbox } = books.runs;
    for (let index = 0; index <= 1000; index++) await outbox.put(request(`k${index}`));
    expect((await outbox.list({ limit: 5000 })).map(({ idempotencyKey }) => idempotencyKey)).toEqual(
      Array.from({ length: 1000 }, (_, index) => `k${1000 - index}`),
    );
    expect(await outbox.list({ limit: 0 })).toHaveLength(1);
    expect(await outbox.list({ limit: -1 })).toHaveLength(1);
    expect(await outbox.list({})).toHaveLength(100);
  });

  test("a row exists once per key, and is due for one owner at a time", async () => {
    const row = await books.runs.outbox.put(request("k"));
    expect(await books.runs.outbox.put({ ...request("k"), text: "other" })).toEqual(row);
    expect(books.told()).toEqual(["outbox.queued"]);
    expect(await books.runs.outbox.nextAt()).toBe(books.now);
    expect(await books.runs.outbox.due("a", 10, 1000)).toEqual([row]);
    expect(await books.runs.outbox.due("b", 10, 1000)).toEqual([]);
    expect(await books.runs.outbox.nextAt()).toBe(books.now + 1000);
    books.now += 1000;
    expect(await books.runs.outbox.due("b", 10, 1000)).toEqual([row]);
    await books.runs.outbox.delivered(row.outboxId, "a", "late");
    expect((await books.runs.outbox.get(row.outboxId))?.state).toBe("queued");
    await books.runs.outbox.delivered(row.outboxId, "b", { id: 7 });
    expect(await books.runs.outbox.get(row.outboxId)).toMatchObject({
      state: "delivered",
      receipt: { id: 7 },
      attempts: 1,
    });
    expect(books.told()).toEqual(["outbox.delivered"]);
    expect(await books.runs.outbox.nextAt()).toBe(null);
  });

  test("rows of a target wait while another process delivers to it, and those of other targets do not", async () => {
    const { outbox } = books.runs;
    const to = (key: string, name: string) => ({ ...request(key), target: { to: name, channel: "webhook" } });
    await outbox.put(to("1", "x"));
    // The order of its fields does not make it another target.
    await outbox.put({ ...to("2", "x"), target: { channel: "webhook", to: "x" } });
    await outbox.put(to("3", "y"));
    const due = async (owner: string, most: number) =>
      (await outbox.due(owner, most, 1000)).map(({ idempotencyKey }) => idempotencyKey);
    const [first] = await outbox.due("a", 1, 1000);
    expect(first?.idempotencyKey).toBe("1");
    expect(await due("b", 10)).toEqual(["3"]);
    await outbox.delivered(first?.outboxId ?? "", "a", null);
    expect(await due("b", 10)).toEqual(["2"]);
    await outbox.put(to("4", "x"));
    books.gone.add("b");
    expect(await due("a", 10)).toEqual(["2", "3", "4"]);
  });

  test("a failed row is retried at its time, then dead, and can be retried or dropped", async () => {
    const { outbox } = books.runs;
    const { outboxId } = await outbox.put(request("k"));
    await outbox.due("a", 10, 1000);
    const failed = await outbox.failed(outboxId, "a", "503", { at: books.now + 5000 });
    expect(failed).toMatchObject({ state: "queued", attempts: 1, lastError: "503" });
    expect(await outbox.failed(outboxId, "a", "410", "dead")).toBe(null);
    expect(await outbox.due("a", 10, 1000)).toEqual([]);
    expect(await outbox.nextAt()).toBe(books.now + 5000);
    books.now += 5000;
    await outbox.due("a", 10, 1000);
    await outbox.failed(outboxId, "a", "410", "dead");
    expect(await outbox.get(outboxId)).toMatchObject({ state: "dead", attempts: 2, lastError: "410" });
    expect((await outbox.retry(outboxId))?.state).toBe("queued");
    expect((await outbox.due("a", 10, 1000)).length).toBe(1);
    expect((await outbox.drop(outboxId))?.state).toBe("dropped");
    expect((await outbox.drop(outboxId))?.state).toBe("dropped");
    expect((await outbox.retry(outboxId))?.attempts).toBe(0);
    expect(await outbox.retry("nowhere")).toBe(null);
    expect(await outbox.drop("nowhere")).toBe(null);
    expect(books.told()).toEqual([
      "outbox.queued",
      "outbox.retry",
      "outbox.dead",
      "run.queued",
      "outbox.queued",
      "outbox.dropped",
      "outbox.queued",
    ]);
  });

  test("a dead letter and its notice to the sender are one change", async () => {
    const { outbox } = books.runs;
    const { outboxId } = await outbox.put(request("k"));
    const [row] = await outbox.due("a", 10, 1000);
    await outbox.failed(outboxId, "b", "410", "dead");
    expect(await books.runs.pending("ann/s")).toEqual([]);
    await outbox.failed(outboxId, "a", "410", "dead");
    const notice = "[Skein] A message to x over webhook was not delivered (410): hello";
    const [noted, ...others] = await books.runs.pending("ann/s");
    expect(noted).toMatchObject({ session: row?.session, kind: "note", message: { content: notice } });
    expect(others).toEqual([]);
    expect((await books.claim()).run.runId).toBe(noted?.runId);
  });

  test("a process that executes only its own requests adopts the notice of a dead letter", async () => {
    books = new RunBooks({ ownRequestsOnly: true });
    const { outboxId } = await books.runs.outbox.put(request("k"));
    await books.runs.outbox.due("a", 10, 1000);
    await books.runs.outbox.failed(outboxId, "a", "410", "dead");
    expect((await books.claim()).run.kind).toBe("note");
  });

  test("lists rows newest first, by state and for one user only", async () => {
    const { outbox } = books.runs;
    const a = await outbox.put(request("a"));
    const b = await outbox.put({ ...request("b"), session: sessionNamed("bob/s") });
    await outbox.drop(a.outboxId);
    expect((await outbox.list({})).map(({ outboxId }) => outboxId)).toEqual([b.outboxId, a.outboxId]);
    expect((await outbox.list({ states: ["dropped", "dead"] })).length).toBe(1);
    expect(await outbox.list({ states: ["queued"] }, "ann")).toEqual([]);
    expect((await outbox.list({ limit: 1 })).length).toBe(1);
    expect(await outbox.get(b.outboxId, "ann")).toBe(null);
  });
});
