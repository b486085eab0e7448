import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { afterEach, describe, expect, test } from "vitest";
import type { Json } from "../../src/entry-store.ts";
import type { AgentSpec, AgentState, ToolContext } from "../../src/index.ts";
import { defineAgent, defineTool } from "../../src/index.ts";
import { configFile } from "../support/family.ts";
import { laterClock } from "../support/run-skein.ts";
import { closeAll, newFolder, withScript } from "../support/skein.ts";
import { soon } from "../support/soon.ts";

afterEach(closeAll);

const sessionKey = "agent:main:main";

interface Visits extends AgentState {
  count: number;
}

class VisitCounter implements Visits {
  readonly key = "visits";
  count = 0;
  save() {
    return this.count;
  }
  load(value: Json | null) {
    this.count = typeof value === "number" ? value : 0;
  }
}

class SealedCounter implements Visits {
  readonly key = "visits";
  #count = 0;
  get count() {
    return this.#count;
  }
  set count(count) {
    this.#count = count;
  }
  save() {
    return this.#count;
  }
  load(value: Json | null) {
    this.#count = typeof value === "number" ? value : 0;
  }
}

const plain: Visits = {
  key: "visits",
  count: 0,
  save() {
    return this.count;
  },
  load(value) {
    this.count = typeof value === "number" ? value : 0;
  },
};

/** Counts a visit in the state once the expected number of runs is inside the tool. */
function visitTool(runs: number) {
  const everyone = Promise.withResolvers<void>();
  let inside = 0;
  return defineTool({
    name: "visit",
    description: "Counts a visit.",
    execute: async (_, { state }: ToolContext) => {
      inside += 1;
      if (inside >= runs) everyone.resolve();
      await everyone.promise;
      const visits = state.visits as unknown as Visits;
      visits.count += 1;
      return `visit ${visits.count}`;
    },
  });
}

/** Calls a tool on every user message. */
function calling(name: string) {
  return ({ prompt }: LanguageModelV4CallOptions) =>
    prompt.at(-1)?.role === "tool" ? { text: "Done." } : { calls: [{ name }] };
}

describe("state: [module]", () => {
  const forms: [string, NonNullable<AgentSpec["state"]>][] = [
    ["an object", [plain]],
    ["an instance of a class", [new VisitCounter()]],
    ["a function that creates the module", [() => new SealedCounter()]],
    ["a function that creates the list", () => [new SealedCounter()]],
  ];

  test.each(forms)("[POL18] concurrent runs of two users share no value: %s", async (_, state) => {
    const { skein } = await withScript(calling("visit"), { tools: [visitTool(2)], state });
    const users = ["ann", "bob"];
    const send = (userId: string) => skein.session({ userId, sessionKey }).send("hello").result;
    await Promise.all(users.map(send));
    await send("ann");
    const saved = users.map(async (userId) => {
      const { sessionId = "" } = (await skein.session({ userId, sessionKey }).record()) ?? {};
      return (await skein.store.state.get({ userId, agentId: "main" }, sessionId, "visits"))?.value;
    });
    expect(await Promise.all(saved)).toEqual([2, 1]);
  });

  test("[POL19] a tool reaches the state of its session as context.state", async () => {
    const { skein, lines } = await withScript(calling("visit"), { state: [plain], tools: [visitTool(1)] });
    await skein.session({ sessionKey }).send("one").result;
    const { sessionId } = await skein.session({ sessionKey }).send("two").result;
    expect((await lines(sessionId)).filter((line) => line.startsWith("result"))).toEqual([
      "result: visit 1",
      "result: visit 2",
    ]);
    expect(plain.count).toBe(0);
  });

  test("[POL20] state belongs to one session, and is restored when the folder is opened again", async () => {
    const dir = newFolder();
    const agent = () => ({ state: [plain], tools: [visitTool(1)] });
    const first = await withScript(calling("visit"), agent(), { dir });
    const send = async (at: typeof first, sessionId: string) => {
      await at.skein.session({ sessionId }).send("hello").result;
      return (await at.lines(sessionId)).filter((line) => line.startsWith("result")).at(-1);
    };
    expect(await send(first, "a")).toBe("result: visit 1");
    expect(await send(first, "b")).toBe("result: visit 1");
    await first.skein.close();
    const second = await withScript(calling("visit"), agent(), { dir });
    expect(await send(second, "a")).toBe("result: visit 2");
  });

  test("[MCH11] a process that stalls past its lease saves none of the state of its run", async () => {
    const dir = newFolder();
    let attempts = 0;
    const watched = (): Visits => ({
      ...plain,
      save() {
        if (this.count === 0) return null;
        attempts += 1;
        return this.count;
      },
    });
    const agent = { state: [watched], tools: [visitTool(1)] };
    const steps = [{ calls: [{ name: "visit" }] }, { stall: true }, { text: "Done." }];
    // It can claim the run again, but only after its stalled turn has ended.
    const config = configFile({ lanes: { perProcess: 1 } });
    const { skein, model } = await withScript(steps, agent, { dir, config });
    const { result } = skein.session({ sessionId: "s" }).send("hello");
    await soon(() => model.requests.length).toBe(2);
    const other = await withScript([{ text: "Done." }], agent, { dir, clock: laterClock });
    await result;
    await skein.close();
    expect(attempts).toBeGreaterThan(0);
    expect(await other.skein.store.state.get({ agentId: "main" }, "s", "visits")).toBeNull();
  });

  test("[POL21] invokeTool loads the state of the session before the call and saves it after", async () => {
    const { skein } = await withScript(calling("visit"), { state: [plain], tools: [visitTool(1)] });
    await skein.session({ sessionKey }).send("one").result;
    const { result } = await skein.invokeTool("visit", {}, { sessionKey });
    expect(JSON.stringify(result)).toContain("visit 2");
    const { sessionId = "" } = (await skein.session({ sessionKey }).record()) ?? {};
    expect((await skein.store.state.get({ agentId: "main" }, sessionId, "visits"))?.value).toBe(2);
  });

  const outside = { count: 0 };
  const shared: [string, AgentState][] = [
    ["arrow functions over a variable", { key: "visits", save: () => outside.count, load: () => undefined }],
    [
      "methods over a variable",
      {
        key: "visits",
        save() {
          return outside.count;
        },
        load(value) {
          outside.count = Number(value);
        },
      },
    ],
    ["private fields", new SealedCounter()],
    ["a key that is built in", { ...plain, key: "tools" }],
  ];

  test.each(shared)("[POL22] defineAgent refuses a module that runs would share: %s", (_, module) => {
    expect(() => defineAgent({ id: "main", state: [module] })).toThrow(/state module/);
  });

  test("[POL22] a function that returns the same module for two runs fails the second run", async () => {
    const one = new VisitCounter();
    const { skein } = await withScript(() => ({ text: "Yes." }), { state: [() => one] as never });
    await skein.session({ sessionKey }).send("one").result;
    await expect(skein.session({ sessionKey }).send("two").result).rejects.toThrow(
      "same object for two runs",
    );
  });
});

describe("the state module tools", () => {
  const browse = defineTool({
    name: "browse",
    description: "Opens a page.",
    groups: ["browser"],
    execute: () => "a page",
  });
  const switchTool = (name: string, act: (state: ToolContext["state"]) => void) =>
    defineTool({
      name,
      description: "Switches the browser.",
      execute: (_, { state }: ToolContext) => {
        act(state);
        return state.tools.groups.join(", ") || "none";
      },
    });
  const agent: Partial<AgentSpec> = {
    onDemand: ["browser"],
    allow: ["browse", "open_browser", "close_browser"],
    tools: [
      browse,
      switchTool("open_browser", ({ tools }) => tools.activate("browser")),
      switchTool("close_browser", ({ tools }) => tools.deactivate("browser")),
    ],
  };
  /** Calls the tool named by the last user message. */
  const obeying = ({ prompt }: LanguageModelV4CallOptions) => {
    if (prompt.at(-1)?.role === "tool") return { text: "Done." };
    const [name] =
      /\w+_browser|browse/.exec(JSON.stringify(prompt.findLast(({ role }) => role === "user"))) ?? [];
    return name === undefined ? { text: "Yes." } : { calls: [{ name }] };
  };
  const offered = (requests: readonly LanguageModelV4CallOptions[]) =>
    requests.map(({ tools = [] }) => tools.some(({ name }) => name === "browse"));

  test("[POL23] tools of an on-demand group are not offered until the group is active, from the next request on", async () => {
    const { skein, model } = await withScript(obeying, agent);
    await skein.session({ sessionKey }).send("hello").result;
    await skein.session({ sessionKey }).send("open_browser").result;
    await skein.session({ sessionKey }).send("close_browser").result;
    expect(offered(model.requests)).toEqual([false, false, true, true, false]);
  });

  test("[POL24] active groups belong to one session, and are restored when the folder is opened again", async () => {
    const dir = newFolder();
    const first = await withScript(obeying, agent, { dir });
    await first.skein.session({ sessionId: "a" }).send("open_browser").result;
    await first.skein.session({ sessionId: "b" }).send("hello").result;
    expect(offered(first.model.requests)).toEqual([false, true, false]);
    await first.skein.close();
    const second = await withScript(obeying, agent, { dir });
    await second.skein.session({ sessionId: "a" }).send("hello").result;
    await second.skein.session({ sessionId: "b" }).send("hello").result;
    expect(offered(second.model.requests)).toEqual([true, false]);
  });

  test("[POL25] a tool whose group is not active is neither listed nor called outside of a run", async () => {
    const { skein } = await withScript(obeying, agent);
    await skein.session({ sessionKey }).send("hello").result;
    const names = async () => (await skein.xray({ sessionKey })).request.tools?.map(({ name }) => name);
    expect(await names()).toEqual(["open_browser", "close_browser"]);
    expect(await skein.invokeTool("browse", {}, { sessionKey })).toMatchObject({ isError: true });
    await skein.invokeTool("open_browser", {}, { sessionKey });
    expect(await names()).toEqual(["browse", "open_browser", "close_browser"]);
    expect(await skein.invokeTool("browse", {}, { sessionKey })).toMatchObject({ isError: false });
  });
});
