import { describe, expect, test } from "vitest";
import type { Json } from "../store/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import type { StateModule } from "./with-state.ts";
import { ActiveTools, withState } from "./with-state.ts";

const scope = { agentId: "main" };
const ran = { done: "The work was done" };

/** A module that counts. `seen` is the value it was loaded with. */
function counter(key = "count"): StateModule & { value: number; seen: (Json | null)[] } {
  return {
    key,
    value: 0,
    seen: [],
    save() {
      return this.value;
    },
    load(value) {
      this.seen.push(value);
      this.value = typeof value === "number" ? value : 0;
    },
  };
}

async function prepared() {
  const store = createMemoryStore();
  for (const id of ["s", "t"])
    await store.sessions.create(scope, { key: `agent:main:session:${id}`, sessionId: id, cwd: "/" });
  const held = async (key = "count") => (await store.state.get(scope, "s", key))?.value ?? null;
  return { store, held };
}

describe("withState", () => {
  test("[POL24] active tool groups are stored per session, and a new session starts with its agent's", async () => {
    const { store, held } = await prepared();
    const run = (sessionId: string, work: (tools: ActiveTools) => void) => {
      const tools = new ActiveTools(["sessions"]);
      return withState(
        store.state,
        scope,
        sessionId,
        [tools],
        async () => {
          work(tools);
          return tools.groups;
        },
        ran,
      );
    };
    expect(await run("s", (tools) => tools.activate("web"))).toEqual(["sessions", "web"]);
    expect(await run("s", (tools) => tools.deactivate("sessions"))).toEqual(["web"]);
    expect(await run("s", () => undefined)).toEqual(["web"]);
    expect(await run("t", () => undefined)).toEqual(["sessions"]);
    expect(await held("tools")).toEqual({ groups: ["web"] });
    await store.state.set(scope, "s", "tools", { groups: ["a", 7], later: true });
    expect(await run("s", () => undefined)).toEqual(["a"]);
  });

  test("[POL20] state is loaded before and saved after a turn, and a new session starts without any", async () => {
    const { store, held } = await prepared();
    const module = counter();
    const add = (sessionId: string) =>
      withState(
        store.state,
        scope,
        sessionId,
        [module],
        async () => {
          module.value += 1;
          return module.value;
        },
        ran,
      );
    expect(await add("s")).toBe(1);
    expect(await add("s")).toBe(2);
    expect(await add("t")).toBe(1);
    expect(module.seen).toEqual([null, 1, null]);
    expect(await held()).toBe(2);
  });

  test("[POL20] unchanged state is not written, and neither is the initial state", async () => {
    const { store } = await prepared();
    const run = (work: (tools: ActiveTools) => void) => {
      const tools = new ActiveTools(["sessions"]);
      return withState(store.state, scope, "s", [tools], async () => work(tools), ran);
    };
    const version = async () => (await store.state.get(scope, "s", "tools"))?.version ?? null;
    await run(() => undefined);
    expect(await version()).toBe(null);
    await run((tools) => tools.activate("web"));
    const first = await version();
    expect(first).not.toBe(null);
    await run(() => undefined);
    expect(await version()).toBe(first);
    await run((tools) => tools.deactivate("web"));
    expect(await version()).not.toBe(first);
  });

  test("[LIB17] state is saved after an error, a timeout and an abort", async () => {
    const { store, held } = await prepared();
    const module = counter();
    const run = (work: () => Promise<void>, options = {}) =>
      withState(
        store.state,
        scope,
        "s",
        [module],
        async () => {
          module.value += 1;
          await work();
        },
        { ...ran, ...options },
      );
    const never = () => new Promise<void>(() => undefined);
    await expect(run(async () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
    expect(await held()).toBe(1);
    await expect(run(never, { timeoutMs: 5 })).rejects.toThrow("timeout");
    expect(await held()).toBe(2);
    const stop = new AbortController();
    const aborted = run(
      async () => {
        stop.abort(new Error("stopped"));
        await never();
      },
      { signal: stop.signal },
    );
    await expect(aborted).rejects.toThrow("stopped");
    expect(await held()).toBe(3);
    await expect(run(never, { signal: stop.signal })).rejects.toThrow("stopped");
    expect(await held()).toBe(3);
  });

  test("overwriting another process's save is a conflict, and one module's failure does not prevent another's save", async () => {
    const { store, held } = await prepared();
    const [first, second] = [counter("first"), counter("second")];
    const work = async () => {
      await store.state.set(scope, "s", "first", 99);
      first.value = 1;
      second.value = 5;
    };
    const conflict = expect.objectContaining({ code: "conflict" });
    await expect(withState(store.state, scope, "s", [first, second], work, ran)).rejects.toThrow(conflict);
    expect(await held("first")).toBe(99);
    expect(await held("second")).toBe(5);
    const failing = async () => {
      await work();
      throw new Error("and failed");
    };
    await expect(withState(store.state, scope, "s", [first], failing, ran)).rejects.toThrow("and failed");
    await expect(withState(store.state, scope, "s", [first, counter("first")], work, ran)).rejects.toThrow(
      "Two state modules",
    );
  });
});
