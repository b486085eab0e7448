import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks } from "../../../test/support/run-books.ts";

let books: RunBooks;
beforeEach(() => {
  books = new RunBooks();
});

describe("queries for many runs", () => {
  test("return what each of them waits for, with the same number of reads for many as for few", async () => {
    const first = await books.running("a");
    const second = await books.running("b");
    await books.runs.wait(first.held, { for: "run", runIds: [second.run.runId] });
    const third = await books.running("c");
    await books.runs.sleep(third.held, { waitFor: [first.run.runId], wakeAt: books.now + 5000 });
    const queued = [];
    for (let each = 0; each < 20; each++) queued.push((await books.accept("a")).runId);
    const ended = await books.running("d");
    await books.runs.end(ended.held, { state: "ok" });
    const all = [first, second, third, ended].map(({ run }) => run.runId).concat(queued);

    const expected = new Map<string, unknown>();
    for (const runId of all) expected.set(runId, await books.runs.waits(runId));
    expect(await books.runs.waitsOf([...all, "nowhere"])).toEqual(expected);
    expect(expected.get(first.run.runId)).toEqual({
      runIds: [second.run.runId],
      wakeAt: null,
      app: null,
      missingTools: [],
      why: { kind: "runs", text: "Waiting until 1 run has ended.", runIds: [second.run.runId] },
    });
    expect(expected.get(third.run.runId)).toEqual({
      runIds: [first.run.runId],
      wakeAt: books.now + 5000,
      app: null,
      missingTools: [],
      why: {
        kind: "runs",
        text: "Sleeping until 1 run has ended.",
        runIds: [first.run.runId],
        retryAt: books.now + 5000,
      },
    });
    expect(expected.get(queued[4] ?? "")).toEqual({
      runIds: [first.run.runId],
      wakeAt: null,
      app: null,
      missingTools: [],
      why: {
        kind: "ahead",
        text: "Waiting for 5 runs ahead of it in this session.",
        ahead: 5,
        runIds: [first.run.runId],
      },
    });
    expect(expected.get(ended.run.runId)).toEqual({ runIds: [], wakeAt: null, app: null, missingTools: [] });
    expect(await books.runs.waits("nowhere")).toBe(null);

    const reads = books.countReads();
    await books.runs.waitsOf(all);
    expect(reads.count).toBeLessThanOrEqual(6);
  });

  test("read the newest approvals of one session, up to a limit", async () => {
    const asked: string[] = [];
    for (const uid of ["a", "b"]) {
      const claim = await books.running(uid);
      for (let each = 0; each < 10; each++) {
        books.now++;
        const request = { toolCallId: `c${each}`, toolName: "pay", arguments: {}, expiresAt: 9e9 };
        const { approvalId } = await books.runs.requestApproval(claim.held, request);
        if (uid === "a") asked.push(approvalId);
        if (each % 2 === 0) await books.runs.resolveApproval(approvalId, "approved", null);
      }
    }
    const reads = books.countReads();
    const last = await books.runs.approvals({ sessionUid: "a", limit: 3 }, "ann");
    expect(last.map(({ approvalId }) => approvalId)).toEqual(asked.slice(-3));
    expect(last.map(({ session }) => session.uid)).toEqual(["a", "a", "a"]);
    expect(reads.count).toBe(1);
    const open = await books.runs.approvals({ sessionUid: "a", open: true, limit: 2 }, "ann");
    expect(open.map(({ approvalId }) => approvalId)).toEqual([asked[7], asked[9]]);
    expect(await books.runs.approvals({}, "ann")).toHaveLength(20);
    expect(await books.runs.approvals({ limit: 3 }, "bob")).toEqual([]);
  });
});
