import { beforeEach, describe, expect, test } from "vitest";
import { RunBooks } from "../../../test/support/run-books.ts";
import { refused } from "../../conformance/expect.ts";

let books: RunBooks;
beforeEach(() => {
  books = new RunBooks();
});

const message = { role: "user", content: "new" } as const;

describe("input that a turn is about to write", () => {
  test("is read again when it is reserved, and can be edited until then only", async () => {
    const { held } = await books.running("s");
    const { runId } = await books.accept("s");
    const [listed] = await books.runs.steerable(held);
    expect(listed?.message).not.toEqual(message);
    await books.runs.edit(runId, message);
    expect(await books.runs.reserveInput(held, runId)).toMatchObject({ runId, message });
    const late = { role: "user", content: "late" } as const;
    await refused("conflict", () => books.runs.edit(runId, late));
    await books.runs.mergeInput(held, runId);
    expect(await books.runs.get(runId)).toMatchObject({ state: "merged", message });
  });

  test("is not edited if it is not the expected message, unless it is the new one already", async () => {
    const { runId } = await books.accept("s");
    const first = (await books.runs.get(runId))?.message;
    await books.runs.edit(runId, message, first);
    await books.runs.edit(runId, message, first);
    const other = { role: "user", content: "other" } as const;
    await refused("conflict", () => books.runs.edit(runId, other, first));
    expect(await books.runs.edit(runId, other, message)).toMatchObject({ message: other });
  });

  test("is not reserved after it was aborted", async () => {
    const { held } = await books.running("s");
    const { runId } = await books.accept("s");
    expect(await books.runs.abort(runId)).toBe("aborted");
    expect(await books.runs.reserveInput(held, runId)).toBeNull();
  });

  test("aborts the turn when it is aborted", async () => {
    const { held, run } = await books.running("s");
    const { runId } = await books.accept("s");
    await books.runs.reserveInput(held, runId);
    expect(await books.runs.abort(runId)).toBe("queued");
    expect(await books.runs.get(run.runId)).toMatchObject({ abortRequested: true });
    await books.runs.mergeInput(held, runId);
    await books.runs.end(held, { state: "ok", reply: "both" });
    expect(await books.runs.get(runId)).toMatchObject({ outcome: { state: "aborted" } });
  });

  test("is offered to the next owner of a lost turn, and to its own turn after a failure", async () => {
    const first = await books.running("s");
    const { runId } = await books.accept("s");
    await books.runs.reserveInput(first.held, runId);
    await books.runs.release(first.held);
    const again = await books.claim();
    expect(again.arrivals).toEqual([]);
    expect((await books.runs.steerable(again.held)).map((each) => each.runId)).toEqual([runId]);
    await books.runs.reserveInput(again.held, runId);
    await books.runs.end(again.held, { state: "error", code: "model_failed", error: "broken" });
    expect((await books.claim()).run.runId).toBe(runId);
  });
});
