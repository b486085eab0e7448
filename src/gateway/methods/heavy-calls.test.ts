import { describe, expect, test } from "vitest";
import { HeavyCalls, heavyQueueOf } from "./heavy-calls.ts";

const never = new AbortController().signal;
const heavy = "sessions.export";

/** Calls that the test completes, and the order in which they started. */
function world() {
  const calls = new HeavyCalls();
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const call = (name: string, tokenId = "a", method = heavy, signal = never) =>
    calls.run(tokenId, heavyQueueOf(method, {}), signal, () => {
      begun.push(name);
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
    });
  return { calls, begun, call, end: (name: string) => ends.get(name)?.() };
}

describe("heavy calls of a token", () => {
  test("two run at a time, and the others wait in order", async () => {
    const { calls, begun, call, end } = world();
    const all = ["1", "2", "3", "4"].map((name) => call(name));
    expect(begun).toEqual(["1", "2"]);
    end("2");
    await all[1];
    await Promise.resolve();
    expect(begun).toEqual(["1", "2", "3"]);
    end("1");
    await all[0];
    await Promise.resolve();
    expect(begun).toEqual(["1", "2", "3", "4"]);
    end("3");
    end("4");
    expect(await Promise.all(all)).toEqual(["1", "2", "3", "4"]);
    expect(calls.size).toBe(0);
  });

  test("calls of another token, and light calls, do not wait", () => {
    const { begun, call } = world();
    for (const name of ["1", "2", "3"]) void call(name);
    void call("other", "b");
    void call("light", "a", "sessions.get");
    expect(begun).toEqual(["1", "2", "other", "light"]);
  });

  test("reads do not wait for writes, which may wait for a lock", () => {
    const { begun, call } = world();
    for (const name of ["1", "2", "3"]) void call(name, "a", "sessions.redact");
    void call("read");
    expect(begun).toEqual(["1", "2", "read"]);
  });

  test("a call whose client disconnected is not started and delays no other", async () => {
    const { calls, begun, call, end } = world();
    const controller = new AbortController();
    const first = [call("1"), call("2")];
    const left = call("left", "a", heavy, controller.signal);
    const last = call("last");
    controller.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    await expect(call("late", "a", heavy, controller.signal)).rejects.toThrow("gone");
    end("1");
    await first[0];
    await Promise.resolve();
    expect(begun).toEqual(["1", "2", "last"]);
    end("2");
    end("last");
    await Promise.all([...first, last]);
    expect(calls.size).toBe(0);
  });

  test("a call whose client has disconnected is not started even if it would not wait", async () => {
    const { begun, call } = world();
    const signal = AbortSignal.abort(new Error("gone"));
    const left = Promise.allSettled([heavy, "sessions.create"].map((each) => call(each, "a", each, signal)));
    expect(begun).toEqual([]);
    expect((await left).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  });

  test("a failed call frees its place", async () => {
    const { calls, begun, call, end } = world();
    const failed = calls.run("a", heavyQueueOf(heavy, {}), never, async () => {
      throw new Error("no");
    });
    await expect(failed).rejects.toThrow("no");
    const both = [call("1"), call("2")];
    expect(begun).toEqual(["1", "2"]);
    end("1");
    end("2");
    await Promise.all(both);
    expect(calls.size).toBe(0);
  });
});
