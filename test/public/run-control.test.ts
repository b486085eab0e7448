import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MethodName, Params, Result } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { scriptedModel, temporaryFolder } from "../../src/entry-testing.ts";
import type { Skein } from "../../src/index.ts";
import { defineTool } from "../../src/index.ts";
import { usesDatabases } from "../support/empty-store.ts";
import type { MountedOverHttp } from "../support/mounted-gateway.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import { brief, gateOf, messagesOf, openRuns } from "../support/run-skein.ts";
import { soon } from "../support/soon.ts";

let home: TemporaryFolder;
let skein: Skein;
let gateway: MountedOverHttp;
let gate: ReturnType<typeof gateOf>;
/** Every prompt sent to the model, as text. */
let prompts: string[];
let failures: number;
/** How far the clock is ahead. */
let aheadMs: number;

beforeEach(() => {
  home = temporaryFolder();
  gate = gateOf();
  prompts = [];
  failures = 0;
  aheadMs = 0;
});
afterEach(async () => {
  gate.pass();
  await gateway.close();
  await skein.close({ graceMs: 0 });
  home.remove();
});

const hold = defineTool({
  name: "hold",
  description: "Waits.",
  execute: async () => {
    await gate.wait();
    return "held";
  },
});
const pay = defineTool({ name: "pay", description: "Pays.", approval: true, execute: () => "paid" });

/** Calls the tool named by the last user message, once. Otherwise, repeats that message. */
const model = () =>
  scriptedModel(({ prompt }) => {
    prompts.push(JSON.stringify(prompt));
    const last = prompt.findLastIndex(({ role }) => role === "user");
    const said = JSON.stringify(prompt[last]?.content);
    if (failures > 0 && said.includes("fail")) {
      failures -= 1;
      return { error: { message: "The model is broken.", status: 400 } };
    }
    const name = ["hold", "pay"].find((each) => said.includes(each));
    const isCalled = prompt.slice(last).some(({ role }) => role === "tool");
    return name === undefined || isCalled ? { text: "Done." } : { calls: [{ name, arguments: {} }] };
  });

async function open(workers = true): Promise<void> {
  const config = { lanes: { main: 1 }, retries: { max: 0 }, budget: { tokens: 1000 } };
  const clock = { now: () => Date.now() + aheadMs };
  const tools = [hold, pay];
  ({ skein } = await openRuns({ dir: home.path, config, model: model(), tools, workers, clock }));
  gateway = await mountOverHttp(skein, home.path);
}

function call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
  return gateway.call(method, params);
}

const [a, b] = ["agent:main:session:a", "agent:main:session:b"];
let keys = 0;
async function send(sessionKey: string, message: string, more: Partial<Params<"chat.send">> = {}) {
  keys += 1;
  const params = { sessionKey, message, idempotencyKey: `k${keys}`, queueMode: "followup", ...more } as const;
  return (await call("chat.send", params)).runId;
}

const rowOf = async (runId: string) => (await call("runs.get", { runId })).run;
const whyOf = async (runId: string) => (await rowOf(runId)).why;
const ended = (runId: string) => call("agent.wait", { runId, timeoutMs: 60_000 });

describe("why a run waits", () => {
  test("[RNC1] a run says what is before it: a run of its session, its lane, a person", async () => {
    await open();
    const first = await send(a, "hold on");
    await gate.reached;
    const second = await send(a, "next");
    const third = await send(a, "and then");
    const other = await send(b, "hello");
    expect(await whyOf(first)).toBeUndefined();
    expect(await whyOf(second)).toEqual({
      kind: "ahead",
      text: "Waiting for 1 run ahead of it in this session.",
      ahead: 1,
      runIds: [first],
    });
    expect(await whyOf(third)).toMatchObject({ kind: "ahead", ahead: 2 });
    expect(await whyOf(other)).toEqual({
      kind: "lane",
      text: "Waiting for a free slot in the lane main, which runs at most 1 at a time.",
      lane: "main",
    });
    const listed = await call("runs.list", { states: ["queued", "running"] });
    expect(listed.runs.map(({ why }) => why?.kind)).toEqual(["lane", "ahead", "ahead", undefined]);
    const { lanes } = await call("lanes.list", {});
    expect(lanes.find(({ lane }) => lane === "main")).toEqual({
      lane: "main",
      limit: 1,
      running: 1,
      queued: 1,
    });
    gate.pass();
    for (const runId of [first, second, third, other])
      expect(await ended(runId)).toMatchObject({ state: "ok" });
    expect(await whyOf(third)).toBeUndefined();
  });

  test("[RNC1] a run that waits for a person names the approval", async () => {
    await open();
    const runId = await send(a, "pay them");
    await soon(async () => (await whyOf(runId))?.kind).toBe("approval");
    const [asked] = (await call("approvals.list", { runId })).approvals;
    expect(await whyOf(runId)).toEqual({
      kind: "approval",
      text: "Waiting for a person to approve pay.",
      approvalId: asked?.approvalId,
    });
    await call("approvals.resolve", { approvalId: asked?.approvalId ?? "", answer: "approved" });
    await ended(runId);
  });

  test("[RNC1] a run that no process takes says so", async () => {
    await open(false);
    const runId = await send(a, "hello");
    // Only the processes of a shared database know of each other.
    const why = usesDatabases()
      ? { kind: "worker", text: "No worker is running. It will start as soon as one does." }
      : { kind: "owner", text: "It will start as soon as a process claims it." };
    expect(await whyOf(runId)).toEqual(why);
  });
});

describe("approvals", () => {
  async function asked(runId: string): Promise<Result<"approvals.list">["approvals"][number]> {
    await soon(async () => (await call("approvals.list", { runId })).count).toBe(1);
    const [approval] = (await call("approvals.list", { runId })).approvals;
    if (approval === undefined) throw new Error("no approval");
    return approval;
  }

  test("an approval of a sub-agent names its family from the root on", async () => {
    await open();
    await ended(await send(a, "hello"));
    const spawn = { task: "pay them", label: "payer" };
    await call("tools.invoke", { sessionKey: a, name: "sessions_spawn", arguments: spawn });
    await soon(async () => (await call("approvals.list", {})).count).toBe(1);
    const [approval] = (await call("approvals.list", {})).approvals;
    const { sessionKey = "", rootKey, path, approvalId = "" } = approval ?? {};
    expect({ rootKey, path }).toEqual({
      rootKey: a,
      path: [{ key: a }, { key: sessionKey, label: "payer" }],
    });
    expect(sessionKey).not.toBe(a);
    await call("approvals.resolve", { approvalId, answer: "approved" });
  });

  test("[RNC5] the model reads the note of a denial", async () => {
    await open();
    const runId = await send(a, "pay them");
    const { approvalId, rootKey, path } = await asked(runId);
    expect({ rootKey, path }).toEqual({ rootKey: a, path: [{ key: a }] });
    const note = "Wait until Monday.";
    const denied = await call("approvals.resolve", { approvalId, answer: "denied", note });
    expect(denied).toMatchObject({ answer: "denied", note });
    await ended(runId);
    expect(prompts.at(-1)).toContain(note);
  });

  test("[RNC6] an expired approval cannot be answered", async () => {
    await open();
    const runId = await send(a, "pay them");
    const { approvalId } = await asked(runId);
    aheadMs = 3_600_000;
    const late = () => call("approvals.resolve", { approvalId, answer: "approved" });
    await expect(late()).rejects.toMatchObject({ code: "conflict" });
    await expect(late()).rejects.toMatchObject({ code: "conflict" });
    const { approvals } = await call("approvals.list", { runId, open: false });
    expect(approvals).toMatchObject([{ approvalId, answer: "expired" }]);
  });
});

describe("changing a queued message", () => {
  test("[RNC2] the old text of an edited message never runs, in its own turn or in a running one", async () => {
    await open();
    const first = await send(a, "hold on");
    await gate.reached;
    const steered = await send(a, "OLD-STEERED", { queueMode: "steer" });
    const queued = await send(a, "OLD-QUEUED", { idempotencyKey: "again" });
    expect(await call("runs.edit", { runId: steered, message: "new steered" })).toMatchObject({
      run: { runId: steered, state: "queued", preview: "new steered" },
      input: "new steered",
    });
    await call("runs.edit", { runId: queued, message: "new queued" });
    gate.pass();
    expect(await ended(steered)).toMatchObject({ state: "ok" });
    expect(await ended(queued)).toMatchObject({ state: "ok" });
    expect(prompts.join("\n")).not.toContain("OLD-");
    expect(prompts.join("\n")).toContain("new steered");
    const { sessionId } = await call("sessions.get", { key: a });
    const said = (await messagesOf(skein, sessionId)).filter(({ role }) => role === "user").map(brief);
    expect(said).toEqual(["user: hold on", "user: new steered", "user: new queued"]);
    expect(await rowOf(steered)).toMatchObject({ mergedInto: first });
    // The client that sent the message might not know that it was accepted.
    expect(await send(a, "OLD-QUEUED", { idempotencyKey: "again" })).toBe(queued);
  });

  test("[RNC2] an edit survives a restart", async () => {
    await open(false);
    const runId = await send(a, "OLD");
    await call("runs.edit", { runId, message: "new" });
    await gateway.close();
    await skein.close({ graceMs: 0 });
    await open();
    expect(await ended(runId)).toMatchObject({ state: "ok" });
    expect(prompts.join("\n")).toContain("new");
    expect(prompts.join("\n")).not.toContain("OLD");
  });

  test("[RNC3] a run that has started cannot be edited, and repeating an edit is no conflict", async () => {
    await open();
    const runId = await send(a, "hold on");
    await gate.reached;
    await expect(call("runs.edit", { runId, message: "other" })).rejects.toMatchObject({ code: "conflict" });
    expect((await call("runs.edit", { runId, message: "hold on" })).input).toBe("hold on");
    const queued = await send(a, "next");
    await expect(call("runs.edit", { runId: queued, message: " " })).rejects.toMatchObject({
      code: "invalid_request",
    });
    gate.pass();
    await ended(queued);
    await expect(call("runs.edit", { runId: queued, message: "late" })).rejects.toMatchObject({
      code: "conflict",
    });
  });

  test("[RNC7] a message that another client has changed is not overwritten", async () => {
    await open(false);
    const runId = await send(a, "first");
    const edit = (message: string, expectedText: string) =>
      call("runs.edit", { runId, message, expectedText });
    expect((await edit("second", "first")).input).toBe("second");
    // The response to the first call might have been lost.
    expect((await edit("second", "first")).input).toBe("second");
    await expect(edit("third", "first")).rejects.toMatchObject({ code: "conflict" });
    expect((await call("runs.get", { runId })).input).toBe("second");
    expect((await edit("third", "second")).input).toBe("third");
  });

  test("images of an edited message stay", async () => {
    await open(false);
    const data =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const runId = await send(a, "look", { attachments: [{ mimeType: "image/png", data }] });
    expect((await call("runs.edit", { runId, message: "look again", expectedText: "look" })).input).toBe(
      "look again [image]",
    );
    expect((await call("runs.edit", { runId, message: "" })).input).toBe("[image]");
    // A large image is stored as a blob.
    const large = Buffer.alloc(100_000, data, "base64").toString("base64");
    const second = await send(a, "look here", { attachments: [{ mimeType: "image/png", data: large }] });
    await call("runs.edit", { runId: second, message: "look there" });
    const { pending } = await call("chat.live", { sessionKey: a });
    expect(pending.find((each) => each.runId === second)?.content).toMatchObject([
      { type: "text", text: "look there" },
      { type: "text", skein: { blob: { was: "image" } } },
    ]);
  });
});

describe("retrying", () => {
  test("[RNC4] a run that failed is answered by its retry, and its message stands in the log once", async () => {
    await open();
    failures = 1;
    const failed = await send(a, "do not fail");
    expect(await ended(failed)).toMatchObject({ state: "error" });
    const { runId, retryOf } = await call("runs.retry", { runId: failed });
    expect(retryOf).toBe(failed);
    expect(await call("runs.retry", { runId: failed })).toMatchObject({ runId });
    expect(await ended(runId)).toMatchObject({ state: "ok", reply: "Done." });
    expect(await rowOf(failed)).toMatchObject({ state: "error", retriedAs: runId });
    const { sessionId } = await call("sessions.get", { key: a });
    const said = (await messagesOf(skein, sessionId)).map(brief);
    expect(said.filter((line) => line === "user: do not fail")).toHaveLength(1);
    await expect(call("runs.retry", { runId })).rejects.toMatchObject({ code: "conflict" });
  });

  test("[RNC4] a message that was aborted before its turn runs after a retry", async () => {
    await open();
    const first = await send(a, "hold on");
    await gate.reached;
    const second = await send(a, "second");
    await expect(call("runs.retry", { runId: second })).rejects.toMatchObject({ code: "conflict" });
    await call("runs.abort", { runId: second });
    const { runId } = await call("runs.retry", { runId: second });
    gate.pass();
    await ended(first);
    expect(await ended(runId)).toMatchObject({ state: "ok" });
    const { sessionId } = await call("sessions.get", { key: a });
    const said = (await messagesOf(skein, sessionId)).filter(({ role }) => role === "user").map(brief);
    expect(said).toEqual(["user: hold on", "user: second"]);
  });

  test("[RNC4] a run that was aborted in its turn is answered by its retry", async () => {
    await open();
    const aborted = await send(a, "hold on");
    await gate.reached;
    await call("runs.abort", { runId: aborted });
    gate.pass();
    expect(await ended(aborted)).toMatchObject({ state: "aborted" });
    const { runId } = await call("runs.retry", { runId: aborted });
    expect(await ended(runId)).toMatchObject({ state: "ok" });
  });
});

describe("what a run did", () => {
  test("lists the model requests and tool calls of one run", async () => {
    await open();
    await ended(await send(a, "hello"));
    const runId = await send(a, "hold on");
    await gate.reached;
    const { steps: open_ } = await call("runs.steps", { runId });
    expect(open_).toMatchObject([{ step: 1, stopReason: "toolUse", tools: [{ toolName: "hold" }] }]);
    expect(open_[0]?.tools[0]).not.toHaveProperty("endedAt");
    gate.pass();
    await ended(runId);
    await ended(await send(a, "later"));
    const { steps } = await call("runs.steps", { runId });
    const { messages } = await call("chat.history", { sessionKey: a });
    expect(steps).toMatchObject([
      {
        step: 1,
        entryId: messages.at(3)?.id,
        model: "rehearsal/script",
        tools: [{ toolName: "hold", entryId: messages.at(4)?.id }],
      },
      { step: 2, entryId: messages.at(5)?.id, stopReason: "stop", tools: [] },
    ]);
    for (const { askedAt = 0, answeredAt = 0 } of steps) expect(answeredAt).toBeGreaterThanOrEqual(askedAt);
  });

  test("returns what a request has used of its budget", async () => {
    await open();
    const rootId = await send(a, "hello");
    await ended(rootId);
    const { usage } = await rowOf(rootId);
    expect(await call("runs.budget", { rootId })).toMatchObject({
      rootId,
      runs: { used: 1, allowed: 100 },
      hops: { used: 0, allowed: 8 },
      tokens: { used: usage.totalTokens, allowed: 1000 },
    });
    await expect(call("runs.budget", { rootId: "none" })).rejects.toMatchObject({ code: "not_found" });
  });
});
