import Type from "typebox";
import { afterEach, describe, expect, test } from "vitest";
import { answered, said } from "../../../test/support/compactable.ts";
import { textOfTokens } from "../../../test/support/conversation.ts";
import { answering, closeAll } from "../../../test/support/skein.ts";
import { ann, annAdmin, closeTalking, codeOf, openTalking, secret } from "../../../test/support/talking.ts";
import { defineAgent } from "../../agents/tools/define-agent.ts";
import { defineTool } from "../../agents/tools/define-tool.ts";
import { HookRegistry } from "../../sessions/hooks.ts";

afterEach(async () => {
  await closeTalking();
  await closeAll();
});

const trip = "agent:main:session:trip";
const weather = defineTool({
  name: "weather",
  description: "The weather of a city.",
  parameters: Type.Object({ city: Type.String() }),
  execute: ({ city }, { userId }) => `It rains in ${city} for ${userId}: ${secret}`,
});
const pay = defineTool({ name: "pay", description: "Pays.", approval: true, execute: () => "paid" });
const fail = defineTool({
  name: "fail",
  description: "Fails.",
  execute: () => {
    throw new Error("The disk is full.");
  },
});

async function opened(hooks = new HookRegistry()) {
  const tools = [weather, pay, fail];
  const talking = await openTalking({
    script: answering(),
    tools,
    agent: { deny: ["session_search"] },
    hooks,
  });
  await talking.skein.session({ userId: "ann", sessionKey: trip, sessionId: "trip" }).open();
  const invoke = (name: string, args: object = {}, who = ann) =>
    talking.as(who).call("tools.invoke", { sessionKey: "trip", name, arguments: { ...args } });
  return { ...talking, invoke };
}

describe("calling tools from outside", () => {
  test("a session tool acts for the session, and reports the work it started", async () => {
    const { as, invoke } = await opened();
    const status = await invoke("session_status");
    expect(status).toMatchObject({ name: "session_status", isError: false });
    expect(status).not.toHaveProperty("rootId");
    const call = {
      sessionKey: trip,
      name: "sessions_spawn",
      arguments: { task: "Count the gardens", background: true },
      idempotencyKey: "1",
    };
    const spawned = await as(ann).call("tools.invoke", call);
    expect(spawned).toMatchObject({ isError: false, rootId: expect.any(String) });
    expect(await as(ann).call("tools.invoke", call)).toMatchObject({ rootId: spawned.rootId });
    const { runs } = await as(ann).call("runs.list", { rootId: spawned.rootId ?? "" });
    expect(runs.some(({ sessionKey }) => sessionKey.startsWith("agent:main:subagent:"))).toBe(true);
    const refused = await invoke("sessions_send", { sessionKey: "nowhere", message: "Hi" });
    expect(refused).toMatchObject({
      isError: true,
      result: { status: expect.any(String), error: expect.any(String) },
    });
  });

  test("an agent's own tool gets the same context as in a run", async () => {
    const { invoke } = await opened();
    const rain = await invoke("weather", { city: "Kyoto" }, annAdmin);
    const text = `It rains in Kyoto for ann: ${secret}`;
    expect(rain).toEqual({ name: "weather", isError: false, result: { content: [{ type: "text", text }] } });
    expect(JSON.stringify(await invoke("weather", { city: "Kyoto" }))).not.toContain(secret);
  });

  test.each<[string, object, RegExp]>([
    ["weather", { city: 5 }, /are invalid.*city/],
    ["pay", {}, /needs a person's approval/],
    ["fail", {}, /The disk is full/],
  ])("%s with %j returns a failed result", async (name, args, why) => {
    const { invoke } = await opened();
    const { isError, result } = await invoke(name, args);
    expect(isError).toBe(true);
    expect(JSON.stringify(result)).toMatch(why);
  });

  test("a denied tool is refused, an unknown one is not found, and hooks apply", async () => {
    const hooks = new HookRegistry();
    const after: unknown[] = [];
    hooks.on("before_tool_call", ({ toolName }) =>
      toolName === "pay" ? { block: "Not on Sundays." } : { replace: { city: "Nara" } },
    );
    hooks.on("after_tool_call", ({ toolName, result }) => void after.push([toolName, result.isError]));
    const { invoke } = await opened(hooks);
    expect(await invoke("session_search", { query: "x" })).toMatchObject({
      isError: true,
      result: { status: "forbidden", code: "forbidden" },
    });
    expect(await codeOf(invoke("nothing"))).toBe("not_found");
    expect(JSON.stringify(await invoke("pay"))).toContain("Not on Sundays.");
    expect(JSON.stringify(await invoke("weather", { city: "Kyoto" }))).toContain("Nara");
    expect(after).toEqual([
      ["pay", true],
      ["weather", false],
    ]);
  });
});

describe("agents, models and access", () => {
  test("lists defined agents and those that only have sessions, with their permissions", async () => {
    const agents = [
      defineAgent({
        id: "main",
        model: "rehearsal/script",
        tools: [weather],
        allow: ["weather"],
        visibility: "all",
      }),
      defineAgent({ id: "kept", model: "rehearsal/basic", sandboxed: true, visibility: "all" }),
    ];
    const { skein, as } = await openTalking({ script: answering(), agents });
    await skein.store.sessions.create({ userId: "ann" }, { key: "agent:old:main", cwd: "/" });
    const { agents: rows } = await as(ann).call("agents.list", {});
    expect(rows.map(({ id, configured, isDefault }) => [id, configured, isDefault])).toEqual([
      ["main", true, true],
      ["kept", true, false],
      ["old", false, false],
    ]);
    const [main, kept, old] = rows;
    expect(main).toMatchObject({
      model: "rehearsal/script",
      tools: ["weather"],
      sandboxed: false,
      maySpawn: ["main"],
    });
    expect(kept).toMatchObject({ sandboxed: true, visibility: { send: "tree" }, reach: [] });
    expect(old).toMatchObject({ tools: [], maySpawn: [] });
    expect((await as().call("agents.list", {})).count).toBe(2);
  });

  test("lists the models that the code or an agent names, with their known properties", async () => {
    const { as } = await openTalking({ script: answering() });
    const { models } = await as(ann).call("models.list", {});
    expect(models).toMatchObject([
      {
        model: "rehearsal/script",
        provider: "rehearsal",
        price: { input: 0, output: 0, source: "rehearsal" },
        agents: ["main"],
      },
    ]);
  });

  test("explains access by every rule, for any session of the user as the asker", async () => {
    const { as } = await opened();
    const all = await as(ann).call("access.explain", { asker: "trip", target: "current" });
    expect(all.asker).toMatchObject({ key: trip, userId: "ann", sandboxed: false });
    expect(all.explanations.map(({ action }) => action)).toEqual(["list", "history", "send", "status"]);
    const one = await as(ann).call("access.explain", { asker: trip, target: "nowhere", action: "send" });
    expect(one.explanations).toMatchObject([{ action: "send", decision: { allowed: false } }]);
  });
});

describe("compacting", () => {
  test("the older part is summarized by the session's model; if nothing can be summarized, the result says so", async () => {
    const { skein, as } = await openTalking({ agent: { model: "rehearsal/basic" } });
    const { sessionId } = await skein.session({ userId: "ann", sessionKey: trip, sessionId: "trip" }).open();
    expect(await codeOf(as(annAdmin).call("sessions.compact", { key: "trip" }))).toBe("conflict");
    const turn = (index: number) => [
      { draft: said(`ask ${index} ${textOfTokens(10_000)}`) },
      { draft: answered(`answer ${index} ${textOfTokens(10_000)}`) },
    ];
    const turns = Array.from({ length: 9 }, (_, index) => turn(index)).flat();
    await skein.store.sessions.append({ userId: "ann" }, sessionId, turns);
    const done = await as(annAdmin).call("sessions.compact", { key: "trip", instructions: "Mind the dates" });
    expect(done).toMatchObject({ key: trip, sessionId: "trip", tokensBefore: expect.any(Number) });
    expect(await codeOf(as(annAdmin).call("sessions.compact", { key: "nothing" }))).toBe("not_found");
    expect(await codeOf(as(ann).call("sessions.compact", { key: "trip" }))).toBe("forbidden");
  });
});
