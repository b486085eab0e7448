import { afterEach, describe, expect, test, vi } from "vitest";
import type { Json } from "../../src/entry-store.ts";
import type { Channel, SendOptions } from "../../src/index.ts";
import { defineTool, HookRegistry } from "../../src/index.ts";
import { LedgerRuns } from "../../src/runs/ledger/ledger-runs.ts";
import { Database } from "../../src/store/files/database.ts";
import { closeAll, newFolder, withScript } from "../support/skein.ts";

afterEach(async () => {
  vi.restoreAllMocks();
  await closeAll();
});

describe("the start of a turn", () => {
  test("[LIB17] the input is written before state is loaded", async () => {
    let before: Promise<string[]> = Promise.resolve([]);
    const opened = await withScript([{ text: "Yes." }], {
      state: () => [
        {
          key: "k",
          save: (): Json => null,
          load: () => {
            before = opened.lines("a");
          },
        },
      ],
    });
    await opened.skein.session({ sessionId: "a" }).send("Hello").result;
    expect(await before).toEqual(["user: Hello"]);
  });
});

describe("a run that finds no file descriptor", () => {
  test("waits, and is answered once there is one, with its input written once", async () => {
    let loads = 0;
    const opened = await withScript([{ text: "Yes." }], {
      state: () => [
        {
          key: "k",
          save: (): Json => null,
          load: () => {
            loads += 1;
            if (loads < 3) throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
          },
        },
      ],
    });
    await opened.skein.session({ sessionId: "a" }).send("Hello").result;
    expect(loads).toBe(3);
    expect(await opened.lines("a")).toEqual(["user: Hello", "assistant: Yes."]);
  });
});

describe("a turn that asked to sleep", () => {
  const yielding = (waitingFor: readonly string[]) => {
    const details = { status: "yielded", waitingFor };
    return defineTool({
      name: "sessions_yield",
      description: "Sleeps.",
      execute: async () => ({ content: [{ type: "text", text: JSON.stringify(details) }], details }),
    });
  };

  /** A Skein instance that claims a run whose last entry was a yield. */
  async function takenUp(hooks = new HookRegistry()) {
    const dir = newFolder();
    const tools = [yielding(["r1", "r2"])];
    const steps = [{ calls: [{ name: "sessions_yield" }] }, { text: "I begin", stall: true as const }];
    const first = await withScript(steps, { tools }, { dir });
    first.skein.session({ sessionId: "a" }).send("Go");
    await first.until("run.delta");
    await first.skein.close({ graceMs: 0 });
    const sleep = vi.spyOn(LedgerRuns.prototype, "sleep");
    const opened = await withScript([{ text: "Done." }], { tools }, { dir, hooks });
    await opened.until("run.ended");
    return { ...opened, sleep };
  }

  test("[LIB15] continues if nothing is open, and its start is not reported again", async () => {
    const hooks = new HookRegistry();
    const called: string[] = [];
    hooks.on("session_start", () => void called.push("session_start") as undefined);
    hooks.on("before_agent_start", () => void called.push("before_agent_start") as undefined);
    hooks.on("before_prompt_build", () => void called.push("before_prompt_build") as undefined);
    const { lines } = await takenUp(hooks);
    expect(called).toEqual(["session_start", "before_agent_start", "before_prompt_build"]);
    expect((await lines("a")).at(-1)).toBe("assistant: Done.");
  });

  test("[LIB12] and is recovered waits for its original targets, not for everything it started", async () => {
    const { sleep } = await takenUp();
    expect(sleep.mock.calls.map(([, { waitFor }]) => waitFor)).toEqual([["r1", "r2"]]);
  });
});

describe("a Skein that cannot be opened", () => {
  test("[LIB6] leaves nothing open", async () => {
    const close = vi.spyOn(Database.prototype, "close");
    const desk: Channel = { id: "desk", deliver: async () => ({}) };
    const channels = [desk, { ...desk }];
    await expect(withScript([], {}, { dir: newFolder(), channels })).rejects.toMatchObject({
      code: "invalid_arguments",
    });
    expect(close).toHaveBeenCalled();
  });
});

describe("options of a message", () => {
  test.each([
    [{ queueMode: "bogus" }, "queueMode"],
    [{ thinking: "lots" }, "thinking"],
  ])("[LIB6] %j is refused before anything is created", async (options, named) => {
    const { skein } = await withScript([]);
    const session = skein.session({ sessionId: "a" });
    const refusal = { code: "invalid_arguments", message: expect.stringContaining(named) };
    await expect(session.send("Hello", options as SendOptions).result).rejects.toMatchObject(refusal);
    await expect(session.accept("Hello", options as SendOptions)).rejects.toMatchObject(refusal);
    expect(await session.record()).toBeNull();
  });
});
