import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { follow } from "./follow.ts";
import { realTiming } from "./retry.ts";
import type { WatchListener } from "./watches.ts";

describe("a reader that leaves", () => {
  test.each([
    ["in the middle", [{ id: "e1" }, { id: "e2" }], false],
    ["by a failure", [], true],
  ])("removes its listener from the signal: %s", async (_, entries, fails) => {
    const [over, own] = [new AbortController(), new AbortController()];
    const given: AbortSignal[] = [];
    const call = async (method: string, _params: unknown, { signal }: { readonly signal: AbortSignal }) => {
      given.push(signal);
      if (method === "sessions.resolve") return { key: "agent:main:main", sessionId: "trip", uid: "s1" };
      if (fails) throw new Error("unreadable");
      return { key: "agent:main:main", entries, hasEarlier: false, hasLater: false };
    };
    const watch = (_key: string, listener: WatchListener) => {
      listener.ring();
      return () => undefined;
    };
    const deps = { calls: { call: call as never }, timing: realTiming, over: over.signal, watch };
    const read = async () => {
      for await (const _entry of follow(deps, "main", { signal: own.signal })) break;
    };
    await (fails ? expect(read()).rejects.toThrow("unreadable") : read());
    for (const { signal } of [over, own]) expect(getEventListeners(signal, "abort")).toEqual([]);
    over.abort();
    own.abort();
    expect(given.map(({ aborted }) => aborted)).toEqual([false, false]);
  });
});
