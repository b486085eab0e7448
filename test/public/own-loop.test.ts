import { generateText, isStepCount, jsonSchema, tool } from "ai";
import { afterEach, describe, expect, test } from "vitest";
import { scriptedModel } from "../../src/entry-testing.ts";
import { defineTool, sessionTools } from "../../src/index.ts";
import type { OpenedSkein } from "../support/skein.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";

afterEach(closeAll);

const trip = { sessionId: "trip" };
const user = (content: string) => ({ role: "user" as const, content });
const assistant = (content: string) => ({ role: "assistant" as const, content });
const spawnsHelper = { name: "sessions_spawn", arguments: { task: "Look", background: true } };

/** How far the test's clock is ahead, in milliseconds. */
let ahead = 0;
const clock = { now: () => Date.now() + ahead };

const announced = ({ until }: OpenedSkein) => until("run.queued", ({ kind }) => kind === "announce");

/** A tool in the loop that ends when the sub-agent's announcement has arrived in the session. */
const waitTool = (opened: OpenedSkein) =>
  tool({
    description: "Waits for the helper's announcement.",
    inputSchema: jsonSchema<object>({ type: "object" }),
    execute: async () => {
      await announced(opened);
      // Past the time window in which announcements are collected, when the next claim would take it.
      ahead += 5000;
      await opened.skein.session({ sessionId: "other" }).send("Hello").result;
      return "it arrived";
    },
  });

async function untilAnnounced(opened: OpenedSkein): Promise<void> {
  const { runId } = await announced(opened);
  await opened.until("run.ended", (event) => event.runId === runId);
}

async function runLoop(opened: OpenedSkein, script: Parameters<typeof scriptedModel>[0], steps = 5) {
  const session = opened.skein.session(trip);
  const tools = { ...(await sessionTools(opened.skein, trip)), wait: waitTool(opened) };
  await session.append([user("Go")]);
  const { onStepFinish } = session;
  const model = scriptedModel(script);
  await generateText({ model, tools, prompt: "Go", stopWhen: isStepCount(steps), onStepFinish });
  return session;
}

const loopLines = [
  "user: Go",
  "assistant: (sessions_spawn)",
  expect.stringContaining('"status":"ok"'),
  "assistant: (wait)",
  "result: it arrived",
];

describe("runs of a session wait for your own loop", () => {
  test("[NWC1] an announcement runs after the loop's last answer, and every step is kept", async () => {
    const opened = await withScript(answering(), {}, { clock });
    await runLoop(opened, [{ calls: [spawnsHelper] }, { calls: [{ name: "wait" }] }, { text: "Done." }]);
    await untilAnnounced(opened);
    const lines = await opened.lines("trip");
    expect(lines.slice(0, 6)).toEqual([...loopLines, "assistant: Done."]);
    expect(lines.at(-1)).toMatch(/^assistant: Yes\./);
    expect(opened.reported).toEqual([]);
  });

  test("[NWC2] endTurn lets them run if the loop stops without an answer", async () => {
    const opened = await withScript(answering(), {}, { clock });
    const session = await runLoop(opened, [{ calls: [spawnsHelper] }, { calls: [{ name: "wait" }] }], 2);
    expect(await opened.lines("trip")).toEqual(loopLines);
    await session.endTurn();
    await untilAnnounced(opened);
    expect((await opened.lines("trip")).at(-1)).toMatch(/^assistant: Yes\./);
  });

  test("[NWC2] a send through the handle that appended ends its turn", async () => {
    const { skein, lines } = await withScript(answering());
    const session = skein.session(trip);
    await session.append([user("I like trains.")]);
    await session.send("Plan").result;
    expect(await lines("trip")).toEqual(["user: I like trains.", "user: Plan", "assistant: Yes. 1"]);
  });

  test("[NWC1] a message from elsewhere waits, also in another process", async () => {
    const dir = newFolder();
    const [own, other] = [
      await withScript(answering(), {}, { dir }),
      await withScript(answering(), {}, { dir }),
    ];
    const session = own.skein.session(trip);
    await session.append([user("Go")]);
    const later = await other.skein.session(trip).accept("And me?");
    await other.skein.session({ sessionId: "other" }).send("Hello").result;
    expect((await other.skein.runs.get(later.runId))?.state).toBe("queued");
    await expect(other.skein.session(trip).append([user("Me too")])).rejects.toMatchObject({
      code: "conflict",
    });
    await session.append([assistant("Gone.")]);
    await other.skein.ended(later.runId);
    expect((await own.lines("trip")).slice(0, 3)).toEqual(["user: Go", "assistant: Gone.", "user: And me?"]);
  });

  test("[ATF17] another process cannot compact, reset or branch the session meanwhile", async () => {
    const dir = newFolder();
    const [own, other] = [
      await withScript(answering(), {}, { dir }),
      await withScript(answering(), {}, { dir }),
    ];
    const session = own.skein.session(trip);
    await session.append([user("Go")]);
    const there = other.skein.session(trip);
    const { messages } = await there.history();
    const [first] = messages as unknown as { id: string }[];
    const acts = [() => there.compact(), () => there.reset(), () => there.branch(first?.id ?? "")];
    for (const act of acts) await expect(act()).rejects.toMatchObject({ code: "conflict" });
    await session.append([assistant("Gone.")]);
    expect(await there.reset()).toBeDefined();
  });

  test("[NWC3] the turn of a process that closed, or has appended nothing for ten minutes, has ended", async () => {
    const dir = newFolder();
    const own = await withScript(answering(), {}, { dir, clock });
    await own.skein.session({ sessionId: "left" }).append([user("Go")]);
    await own.skein.session(trip).append([user("Go")]);
    ahead += 11 * 60_000;
    await own.skein.session({ ...trip }).send("Anyone?").result;
    await own.skein.session({ sessionId: "closed" }).append([user("Go")]);
    await own.skein.close();
    const next = await withScript(answering(), {}, { dir, clock });
    const { reply } = await next.skein.session({ sessionId: "closed" }).send("Anyone?").result;
    expect(reply).toBe("Yes. 1");
  });

  test("[NWC3] a turn that another process opened after it expired belongs to that process", async () => {
    const dir = newFolder();
    const [own, other] = [
      await withScript(answering(), {}, { dir, clock }),
      await withScript(answering(), {}, { dir, clock }),
    ];
    const session = own.skein.session(trip);
    const [first] = (await session.append([user("Go")])).entries;
    ahead += 11 * 60_000;
    expect(await other.skein.session(trip).startTurn()).toBe(true);
    for (const act of [() => session.branch(first?.id ?? ""), () => session.reset()])
      await expect(act()).rejects.toMatchObject({ code: "conflict" });
    await other.skein.session(trip).endTurn();
    expect(await session.startTurn()).toBe(true);
    expect(await session.branch(first?.id ?? "")).toBeDefined();
  });

  test("a step that is not written because a run is active is reported", async () => {
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      execute: (_, { signal }) => new Promise((resolve) => signal?.addEventListener("abort", resolve)),
    });
    const { skein, reported, until } = await withScript([{ calls: [{ name: "wait" }] }], { tools: [wait] });
    const session = skein.session(trip);
    session.send("Go").result.catch(() => undefined);
    await until("run.tool");
    const step = { response: { messages: [assistant("Late.")] } };
    await expect(session.onStepFinish(step)).rejects.toMatchObject({ code: "conflict" });
    expect(reported).toMatchObject([{ code: "conflict" }]);
  });
});
