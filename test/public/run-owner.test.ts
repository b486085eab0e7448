import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { json } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { ModelStep, TemporaryFolder } from "../../src/entry-testing.ts";
import { scriptedModel, temporaryFolder } from "../../src/entry-testing.ts";
import type { Channel, Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";
import { acpProcess } from "../support/acp-client.ts";
import { run } from "../support/cli.ts";
import { startCli } from "../support/cli-process.ts";
import { LoopbackServer } from "../support/held-model.ts";
import type { DoctorPayload, OutboxListPayload, RunListPayload, RunPayload } from "../support/payloads.ts";
import { gateOf } from "../support/run-skein.ts";
import { soon } from "../support/soon.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let home: TemporaryFolder;
let dir: string;
let open: Skein[] = [];

beforeEach(() => {
  home = temporaryFolder();
  dir = join(home.path, "root");
});
afterEach(async () => {
  await Promise.all(open.map((skein) => skein.close({ graceMs: 0 })));
  open = [];
  home.remove();
});

const toolNamed = (name: string) =>
  defineTool({ name, description: `The tool ${name}.`, execute: async () => `${name} done` });

type Answer = (last: string) => ModelStep;

/** A model that never answers. The gate is reached when the model receives a request. */
const stallAt =
  (gate: ReturnType<typeof gateOf>): Answer =>
  () => {
    void gate.wait();
    return { stall: true };
  };

interface AppOptions extends Omit<SkeinOptions, "agents"> {
  readonly ids?: readonly string[];
  readonly tools?: readonly string[];
  readonly answer?: Answer;
}

/** An application on the folder. Its models answer with its name. */
async function startApp(app: string, options: AppOptions = {}): Promise<Skein> {
  const { ids = ["main"], tools = [], answer = () => ({ text: `Answer of ${app}` }), ...more } = options;
  const model = scriptedModel(({ prompt }) => answer(JSON.stringify(prompt.at(-1))));
  const skein = await createSkein({
    dir,
    app,
    config: null,
    env: {},
    quiet: true,
    report: () => undefined,
    models: { "rehearsal/script": model },
    agents: ids.map((id) => defineAgent({ id, model: "rehearsal/script", tools: tools.map(toolNamed) })),
    ...more,
  });
  open.push(skein);
  return skein;
}

const cli = (...args: string[]) =>
  run(args, { cwd: home.path, home: home.path, env: { SKEIN_DIR: dir }, columns: 200 });

const cliJson = async <T>(...args: string[]) => JSON.parse((await cli(...args, "--json")).out) as T;

/** One of the app's runs that no process executes. */
async function acceptInApp(app: string, text: string, options: AppOptions = {}): Promise<string> {
  const skein = await startApp(app, { ...options, workers: false });
  const { runId } = await skein.session({ sessionId: "letters" }).accept(text);
  await skein.close();
  return runId;
}

/** Once this process has answered later input, it has skipped everything that it does not run. */
async function answerLater(skein: Skein): Promise<void> {
  await skein.session({ sessionId: "later" }).send("Anything").result;
}

const stateOf = async (skein: Skein, runId: string) => (await skein.runs.get(runId))?.state;
const replyOf = async (skein: Skein, runId: string) => (await skein.ended(runId)).outcome?.reply;

test("[OWN1] two apps that define the same agent ID never answer for each other", async () => {
  const runId = await acceptInApp("desk", "Stamp it");
  const shop = await startApp("shop");
  await answerLater(shop);
  expect(await shop.runs.get(runId)).toMatchObject({ state: "queued", app: "desk", startedAt: null });
  const desk = await startApp("desk");
  expect(await replyOf(desk, runId)).toBe("Answer of desk");
});

test("[OWN3] a process of the app claims a run only if it offers the tools that the run was accepted with", async () => {
  const runId = await acceptInApp("desk", "Stamp it", { tools: ["stamp", "seal"] });
  const poor = await startApp("desk", { tools: ["stamp"] });
  await answerLater(poor);
  expect(await poor.runs.get(runId)).toMatchObject({ state: "queued", requiredTools: ["stamp", "seal"] });
  expect(await poor.waits(runId)).toMatchObject({ app: "desk", missingTools: ["seal"] });
  await poor.close();
  const rich = await startApp("desk", { tools: ["stamp", "seal", "post"] });
  expect(await rich.waits(runId)).toMatchObject({ app: null, missingTools: [] });
  expect(await replyOf(rich, runId)).toBe("Answer of desk");
});

test("[OWN3] a run that is restricted to some tools needs only these", async () => {
  const desk = await startApp("desk", { tools: ["stamp", "seal"], workers: false });
  const { runId } = await desk.session().accept("Stamp it", { tools: ["stamp"] });
  const poor = await startApp("desk", { tools: ["stamp"] });
  expect(await replyOf(poor, runId)).toBe("Answer of desk");
});

test("[OWN15] the command line leaves the runs of an app in the queue and names the app", async () => {
  const runId = await acceptInApp("desk", "Stamp it");
  const other = await cli("send", "agent:main:session:other", "repeat hello");
  expect(other).toMatchObject({ exit: 0 });

  const sent = await cli("send", "letters", "And seal it");
  expect(sent.out).toContain("waiting for the app desk");
  expect(sent).toMatchObject({ exit: 0 });
  const accepted = await cliJson<Record<string, string>>("send", "letters", "Now");
  expect(accepted).toMatchObject({ status: "accepted", waitsForApp: "desk" });
  const left = await cliJson<Record<string, string>>("send", "letters", "Later", "--no-wait");
  expect(left).toMatchObject({ status: "accepted", waitsForApp: "desk" });
  const chat = startCli(dir, "chat", "letters");
  chat.write("Hello\n");
  await chat.until(/waiting for the app desk/);
  chat.endInput();
  expect(await chat.end()).toBe(0);

  const { runs } = await cliJson<RunListPayload>("runs", "ls", "--state", "queued");
  expect(runs.map(({ waitsForApp }) => waitsForApp)).toEqual(Array(5).fill("desk"));
  const desk = await startApp("desk");
  for (const { runId: each } of runs) await desk.ended(each);
  expect(await replyOf(desk, runId)).toBe("Answer of desk");
});

test("[OWN5] runs ls and doctor list the runs that are waiting for an app", async () => {
  const runId = await acceptInApp("desk", "Stamp it");
  const listed = await cli("runs", "ls");
  expect(listed.out).toMatch(new RegExp(`^${runId} +queued .*for the app desk`, "m"));
  expect(listed.out).toContain(`runs release ${runId}`);
  const shown = await cli("runs", "show", runId);
  expect(shown.out).toMatch(/^ +app +desk$/m);
  expect(shown.out).toMatch(/^ +waits +for the app desk$/m);
  const { findings } = await cliJson<DoctorPayload>("doctor");
  const [found] = findings.filter(({ area }) => area === "runs");
  expect(found?.what).toBe(`Run ${runId} in agent:main:session:letters is waiting for the app desk`);
  expect(found?.remedy).toContain(`skein runs release ${runId}`);
});

test("[OWN5] doctor counts the runs that it does not list", async () => {
  const desk = await startApp("desk", { workers: false });
  for (let count = 0; count < 22; count++) await desk.session({ sessionId: "letters" }).accept("Stamp it");
  const { findings } = await cliJson<DoctorPayload>("doctor");
  expect(findings.filter(({ area }) => area === "runs")).toHaveLength(21);
  expect(findings.map(({ what }) => what)).toContain("2 more runs that are waiting for an app");
});

test("[OWN5] runs.list finds the runs that are waiting for an app among many that do not", async () => {
  const waiting = await acceptInApp("shop", "Sell it");
  const desk = await startApp("desk", { workers: false });
  for (let count = 0; count < 5; count++) await desk.session({ sessionId: "letters" }).accept("Stamp it");
  const found = await desk.runs.list({ waitsForApp: true, limit: 2 });
  expect(found.map(({ runId }) => runId)).toEqual([waiting]);
});

test("[OWN6] runs release lets any process execute a run that waits for an app, together with its session", async () => {
  const runId = await acceptInApp("desk", "repeat Stamp it");
  const released = await cli("runs", "release", runId);
  expect(released.out).toContain(`can now execute ${runId}`);
  const next = await cliJson<Record<string, string>>("send", "letters", "repeat And seal it");
  expect(next).toMatchObject({ state: "ok" });
  const { run } = await cliJson<RunPayload>("runs", "show", runId);
  expect(run).toMatchObject({ state: "ok" });
  expect(run.app).toBeUndefined();
  expect((await cli("runs", "release", runId)).out).toContain("is not waiting for an app");
});

test("[OWN6] the library releases a run", async () => {
  const runId = await acceptInApp("desk", "Stamp it");
  const shop = await startApp("shop");
  expect(await shop.runs.release(runId)).toMatchObject({ app: null, requiredTools: [] });
  expect(await replyOf(shop, runId)).toBe("Answer of shop");
  expect(await shop.runs.release(runId)).toMatchObject({ app: null, state: "ok" });
  const sold = shop.session().send("Sell it");
  await sold.result;
  await expect(shop.runs.release(sold.runId)).rejects.toMatchObject({ code: "conflict" });
  await expect(shop.runs.release("unknown")).rejects.toMatchObject({ code: "not_found" });
});

test("[OWN6] runs.release needs the admin scope", async () => {
  const gateway = await wholeGateway();
  const desk = await createSkein({
    dir: gateway.root,
    app: "desk",
    config: null,
    agents: [defineAgent({ id: "main" })],
    workers: false,
    quiet: true,
  });
  try {
    const { runId } = await desk.session().accept("repeat it");
    const { runs } = (await gateway.rpc("runs.list", { waitsForApp: true })).body as RunListPayload;
    expect(runs).toMatchObject([{ runId, waitsForApp: "desk" }]);
    const writer = await gateway.token({ scopes: ["read", "write"] });
    expect((await gateway.rpc("runs.release", { runId }, writer)).status).toBe(403);
    const { body } = await gateway.rpc("runs.release", { runId });
    expect(body).toMatchObject({ runId, agentId: "main", sessionKey: "agent:main:main" });
    const { body: ended } = await gateway.rpc("agent.wait", { runId, timeoutMs: 150_000 });
    expect(ended).toMatchObject({ finished: true, state: "ok" });
  } finally {
    await desk.close({ graceMs: 0 });
    await gateway.close();
  }
});

test("[OWN7] a run of an agent from a skein.yaml is run by any process that has this configuration", async () => {
  const config = join(home.path, "skein.yaml");
  writeFileSync(config, "agents: { helper: { model: rehearsal/script } }\n");
  const desk = await startApp("desk", { config, workers: false });
  const { runId } = await desk.session({ agentId: "helper" }).accept("Help");
  expect(await desk.runs.get(runId)).toMatchObject({ app: null });
  const without = await startApp("shop");
  await answerLater(without);
  expect(await stateOf(without, runId)).toBe("queued");
  const shop = await startApp("shop", { config });
  expect(await replyOf(shop, runId)).toBe("Answer of shop");
});

test("[OWN8] the announcement of a child goes to the app of its parent, whichever process ends the child", async () => {
  const config = join(home.path, "skein.yaml");
  writeFileSync(config, "agents: { helper: { model: rehearsal/script } }\n");
  const spawn = { name: "sessions_spawn", arguments: { task: "Help", agentId: "helper", background: true } };
  const subagents = { allowAgents: ["*"] };
  const stalled = gateOf();
  const desk = await createSkein({
    dir,
    app: "desk",
    config,
    env: {},
    quiet: true,
    models: {
      "rehearsal/script": scriptedModel(({ prompt }) => {
        const last = JSON.stringify(prompt.at(-1));
        if (prompt.at(-1)?.role === "tool") return { text: "It is on its way" };
        if (last.includes("Start")) return { calls: [spawn] };
        void stalled.wait();
        return { stall: true };
      }),
    },
    agents: [defineAgent({ id: "main", model: "rehearsal/script", subagents })],
  });
  const turn = desk.session({ sessionId: "letters" }).send("Start");
  const { rootId } = (await turn.result.then(() => desk.runs.get(turn.runId)))?.root ?? { rootId: "" };
  await stalled.reached;
  await desk.close({ graceMs: 0 });

  const shop = await startApp("shop", { config });
  const childOf = async () => (await shop.runs.list({ rootId })).find(({ kind }) => kind === "spawn");
  await soon(async () => (await childOf())?.state).toBe("ok");
  expect((await childOf())?.app).toBeNull();
  await answerLater(shop);
  const [announce] = await shop.runs.list({ rootId });
  expect(announce).toMatchObject({ kind: "announce", state: "queued", app: "desk" });

  const back = await startApp("desk", { config });
  expect(await replyOf(back, announce?.runId ?? "")).toBe("Answer of desk");
});

test("[OWN8] the turns of an exchange and its announcements stay with their app", async () => {
  const ids = ["main", "writer"];
  const config = {
    tools: { agentToAgent: { enabled: true, allow: ["*"] }, sessions: { visibility: "all" } },
  } as const;
  const toWriter = { sessionKey: "agent:writer:main", message: "Write", timeoutSeconds: 0 };
  const askWriter: ModelStep = { calls: [{ name: "sessions_send", arguments: toWriter }] };
  let isDown = true;
  const started = gateOf();
  const answer: Answer = (last) => {
    if (last.includes("Start")) return askWriter;
    return isDown && last.includes("Write") ? stallAt(started)(last) : { text: "Answer of desk" };
  };
  const desk = await startApp("desk", { ids, config, answer });
  await desk.session({ agentId: "writer" }).send("Hello").result;
  const turn = desk.session({ sessionId: "letters" }).send("Start");
  await started.reached;
  await desk.close({ graceMs: 0 });

  const shop = await startApp("shop", { ids, config });
  await answerLater(shop);
  isDown = false;
  const back = await startApp("desk", { ids, config, answer });
  await back.settled(turn.runId);
  const runs = await back.runs.list({ rootId: turn.runId });
  expect(new Set(runs.map(({ kind }) => kind))).toEqual(new Set(["user", "send", "ping_pong", "announce"]));
  for (const { app, isSilent, outcome } of runs.filter(({ kind }) => kind !== "user"))
    expect(isSilent || [app, outcome?.reply]).toEqual(isSilent || ["desk", "Answer of desk"]);
});

test("[OWN8] a spawned child and a run that sleeps for it stay with their app", async () => {
  const spawn = { name: "sessions_spawn", arguments: { task: "Help", background: true } };
  const yielded = { name: "sessions_yield", arguments: {} };
  let isDown = true;
  const answer: Answer = (last) => {
    if (last.includes("has ended")) return { text: "Woken in desk" };
    if (last.includes("Help")) return isDown ? { stall: true } : { text: "Helped" };
    if (last.includes("Start")) return { calls: [spawn] };
    if (last.includes("childSessionKey")) return { calls: [yielded] };
    return { text: "Answer of desk" };
  };
  const desk = await startApp("desk", { answer });
  const { runId } = await desk.session({ sessionId: "letters" }).accept("Start");
  await soon(() => stateOf(desk, runId)).toBe("sleeping");
  const childOf = async (skein: Skein) => (await skein.runs.list({ startedBy: runId }))[0];
  await soon(async () => (await childOf(desk))?.state).toBe("running");
  await desk.close({ graceMs: 0 });

  const shop = await startApp("shop");
  await answerLater(shop);
  expect(await childOf(shop)).toMatchObject({ state: "queued", app: "desk" });
  expect(await shop.runs.get(runId)).toMatchObject({ state: "sleeping", app: "desk" });

  isDown = false;
  const back = await startApp("desk", { answer });
  expect(await replyOf(back, runId)).toBe("Woken in desk");
});

test("[OWN8] lost input that another process retries stays with its app", async () => {
  const started = gateOf();
  const desk = await startApp("desk", { answer: stallAt(started) });
  const { runId } = await desk.session({ sessionId: "letters" }).accept("Lost");
  await started.reached;
  await desk.close({ graceMs: 0 });
  const db = new DatabaseSync(join(dir, "work.db"), { timeout: 30_000 });
  db.prepare("UPDATE runs SET lost = 4, state = 'error', ended_at = 1, outcome = ? WHERE run_id = ?").run(
    JSON.stringify({ state: "error", code: "lost_too_often" }),
    runId,
  );
  db.exec("DELETE FROM ready; UPDATE ready_users SET count = 0");
  db.close();
  const { runId: retry } = await cliJson<{ runId: string }>("runs", "retry", runId);
  const { run } = await cliJson<RunPayload>("runs", "show", retry);
  expect(run).toMatchObject({ state: "queued", waitsForApp: "desk", retryOf: runId });
  const back = await startApp("desk");
  expect(await replyOf(back, retry)).toBe("Answer of desk");
});

test("[OWN9] input of one app is not steered into the turn of another", async () => {
  const gate = gateOf();
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    execute: async () => {
      await gate.wait();
      return "waited";
    },
  });
  const model = scriptedModel(({ prompt }) =>
    prompt.at(-1)?.role === "tool" ? { text: "Answer of desk" } : { calls: [{ name: "wait" }] },
  );
  const desk = await createSkein({
    dir,
    app: "desk",
    config: null,
    quiet: true,
    models: { "rehearsal/script": model },
    agents: [defineAgent({ id: "main", model: "rehearsal/script", tools: [wait] })],
  });
  open.push(desk);
  const first = desk.session({ sessionId: "letters" }).send("Begin");
  await gate.reached;
  const shop = await startApp("shop");
  const second = shop.session({ sessionId: "letters" }).send("Join", { queueMode: "steer" });
  await soon(() => stateOf(shop, second.runId)).toBe("queued");
  gate.pass();
  expect((await first.result).reply).toBe("Answer of desk");
  expect((await second.result).reply).toBe("Answer of shop");
});

test("[OWN9] a run that waits for its app does not block other apps in the same session", async () => {
  const runId = await acceptInApp("desk", "Stamp it");
  const shop = await startApp("shop");
  expect((await shop.session({ sessionId: "letters" }).send("Sell it").result).reply).toBe("Answer of shop");
  expect(await stateOf(shop, runId)).toBe("queued");
});

test("[OWN9] input after a turn that another app has started names the run of that turn", async () => {
  const started = gateOf();
  const desk = await startApp("desk", { answer: stallAt(started) });
  const { runId } = await desk.session({ sessionId: "letters" }).accept("Stamp it");
  await started.reached;
  await desk.close({ graceMs: 0 });
  const shop = await startApp("shop");
  const behind = await shop.session({ sessionId: "letters" }).accept("Sell it");
  await answerLater(shop);
  expect(await shop.waits(behind.runId)).toMatchObject({ runIds: [runId], app: null });
  expect(await shop.waits(runId)).toMatchObject({ runIds: [], app: "desk" });
  await shop.runs.release(runId);
  expect(await replyOf(shop, behind.runId)).toBe("Answer of shop");
});

test("[OWN9] a run whose tools its app no longer has does not block later input of its session", async () => {
  const runId = await acceptInApp("desk", "Stamp it", { tools: ["stamp", "seal"] });
  const poor = await startApp("desk", { tools: ["stamp"] });
  const letters = poor.session({ sessionId: "letters" });
  expect((await letters.send("Only stamp it").result).reply).toBe("Answer of desk");
  await letters.send("And again", { queueMode: "interrupt" }).result;
  expect(await stateOf(poor, runId)).toBe("queued");
  await poor.runs.release(runId);
  expect(await replyOf(poor, runId)).toBe("Answer of desk");
});

test("[OWN14] a run accepted through a gateway mounted by an app belongs to the app", async () => {
  const desk = await startApp("desk", { workers: false });
  const gateway = await desk.mount();
  const server = await LoopbackServer.listen(gateway.handler);
  try {
    const response = await fetch(`${server.url}/rpc/chat.send`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${readFileSync(join(dir, "token"), "utf8").trim()}`,
      },
      body: JSON.stringify({ sessionKey: "main", message: "Stamp it", idempotencyKey: "one" }),
    });
    const accepted = (await response.json()) as { runId: string; waitsForApp?: string };
    expect(accepted.waitsForApp).toBeUndefined();
    const shop = await startApp("shop");
    await answerLater(shop);
    expect(await shop.runs.get(accepted.runId)).toMatchObject({ state: "queued", app: "desk" });
    const worker = await startApp("desk");
    expect(await replyOf(worker, accepted.runId)).toBe("Answer of desk");
  } finally {
    server.close();
  }
});

test("[OWN15] a turn that this process cannot run names the app", async () => {
  await acceptInApp("desk", "Stamp it");
  const config = { agents: { main: { model: "rehearsal/script" } } };
  const other = await startApp("shop", { ids: [], config });
  const turn = other.session({ sessionId: "letters" }).send("And seal it");
  for await (const event of turn) {
    expect(event).toEqual({ type: "waiting", app: "desk", missingTools: [] });
    break;
  }
  const desk = await startApp("desk");
  expect((await turn.result).reply).toBe("Answer of desk");
  await desk.close();
});

test("[OWN15] the gateway names the app that accepted input waits for", async () => {
  const gateway = await wholeGateway({ folder: home });
  try {
    await acceptInApp("desk", "Stamp it");
    const sessionKey = "agent:main:session:letters";
    const said = (idempotencyKey: string) => ({ message: "And seal it", idempotencyKey });
    const waiting = { waitsForApp: "desk" };
    expect((await gateway.rpc("chat.send", { sessionKey, ...said("1") })).body).toMatchObject(waiting);
    expect((await gateway.rpc("agent", { sessionKey, ...said("2") })).body).toMatchObject(waiting);
    const { body } = await gateway.rpc("sessions.send", { key: sessionKey, ...said("3") });
    expect(body).toMatchObject({ state: "queued", finished: false, ...waiting });
    const { runId } = body as { runId: string };
    expect((await gateway.rpc("agent.wait", { runId, timeoutMs: 0 })).body).toMatchObject(waiting);
    const desk = await startApp("desk");
    await desk.ended(runId);
    const { body: ended } = await gateway.rpc("agent.wait", { runId, timeoutMs: 0 });
    expect(ended).toMatchObject({ finished: true, reply: "Answer of desk" });
    expect(ended).not.toHaveProperty("waitsForApp");
  } finally {
    await gateway.close();
  }
});

test("[OWN15] skein acp names the app, and shows its answer when it arrives", async () => {
  await acceptInApp("desk", "Stamp it");
  const acp = await acpProcess(home.path, ["--dir", dir]);
  try {
    const sessionId = "agent:main:session:letters";
    await acp.editor.agent.request("session/load", { sessionId, cwd: home.path, mcpServers: [] });
    const answered = acp.editor.prompt(sessionId, "And seal it");
    await acp.editor.until(/Waiting for a process of the app desk/);
    await startApp("desk", { answer: () => ({ text: "Sealed" }) });
    expect(await answered).toMatchObject({ stopReason: "end_turn" });
    expect(acp.editor.texts()).toMatch(/to let any process answer\..*Sealed/s);
  } finally {
    await acp.leave();
  }
});

test("[OWN10] a message to a channel waits for a process that has the channel", async () => {
  const delivered: string[] = [];
  const chat: Channel = {
    id: "chat",
    deliver: async ({ text }) => {
      delivered.push(text);
      return {};
    },
  };
  const deliverTo = { channel: "chat", to: "ann" };
  const fails: Channel = { id: "chat", deliver: () => Promise.reject(new Error("down")) };
  const desk = await startApp("desk", { channels: [fails] });
  await desk.session({ sessionId: "letters" }).send("Stamp it", { deliverTo }).result;
  await desk.close();

  const others: string[] = [];
  const shop = await startApp("shop", {
    channels: [{ id: "chat", deliver: async ({ text }) => ({ number: others.push(text) }) }],
  });
  await shop.session({ sessionId: "sales" }).send("Sell it", { deliverTo }).result;
  await soon(() => others).toEqual(["Answer of shop"]);
  await shop.close();

  const tries = (await cliJson<OutboxListPayload>("outbox", "ls", "--state", "queued")).messages[0]?.attempts;
  const sent = await cli("send", "agent:main:session:other", "repeat hello");
  expect(sent).toMatchObject({ exit: 0 });
  const { messages } = await cliJson<OutboxListPayload>("outbox", "ls", "--state", "queued");
  expect(messages).toMatchObject([{ app: "desk", waitsForChannel: true, attempts: tries }]);
  expect((await cli("outbox", "show", messages[0]?.outboxId ?? "")).out).toMatch(
    /reason +waiting for the app desk, which provides the channel chat/,
  );
  const { findings } = await cliJson<DoctorPayload>("doctor");
  expect(findings.map(({ what }) => what)).toContainEqual(
    `Message ${messages[0]?.outboxId} is waiting for the app desk, which provides the channel chat`,
  );

  const back = await startApp("desk", { channels: [chat] });
  await soon(() => delivered).toEqual(["Answer of desk"]);
  await back.close();
});

test("[OWN10] a message to a channel of the configuration waits for a process that has the configuration", async () => {
  const received: unknown[] = [];
  const server = await LoopbackServer.listen((request, response) => {
    void json(request).then((message) => response.writeHead(received.push(message) > 1 ? 200 : 503).end());
  });
  const config = { channels: { hook: { type: "webhook", secret: "s", url: server.url } } } as const;
  try {
    const desk = await startApp("desk", { config });
    await desk
      .session({ sessionId: "letters" })
      .send("Stamp it", { deliverTo: { channel: "hook", to: "ann" } }).result;
    await soon(() => received.length).toBe(1);
    await desk.close();
    expect(await cli("send", "agent:main:session:other", "repeat hello")).toMatchObject({ exit: 0 });
    const { messages } = await cliJson<OutboxListPayload>("outbox", "ls");
    expect(messages).toMatchObject([{ state: "queued", waitsForChannel: true, attempts: 1 }]);
    expect(messages[0]?.app).toBeUndefined();
    const { findings } = await cliJson<DoctorPayload>("doctor");
    const what = `Message ${messages[0]?.outboxId} is waiting for a process that provides the channel hook`;
    expect(findings.map((finding) => finding.what)).toContain(what);
    await startApp("shop", { config });
    await cli("outbox", "retry", messages[0]?.outboxId ?? "");
    await soon(() => received.length).toBe(2);
  } finally {
    server.close();
  }
});

test("runs of a folder from before apps had names are claimed as before", async () => {
  const config = join(home.path, "skein.yaml");
  writeFileSync(config, "agents: { main: { model: rehearsal/script } }\n");
  const before = await createSkein({ dir, config, workers: false, quiet: true });
  const { runId } = await before.session({ sessionId: "letters" }).accept("Stamp it");
  await before.close();
  const db = new DatabaseSync(join(dir, "work.db"), { timeout: 30_000 });
  db.exec(`
    DROP TABLE schedules; ALTER TABLE approvals DROP COLUMN note; DROP INDEX runs_failed;
    DROP INDEX runs_source; ALTER TABLE runs DROP COLUMN source;
    DROP TABLE loop_turns; DROP INDEX run_replies_returned;
    DROP INDEX runs_queued_app; DROP INDEX runs_waiting_app; DROP TABLE session_apps;
    ALTER TABLE runs DROP COLUMN app; ALTER TABLE runs DROP COLUMN tools;
    CREATE TABLE r AS SELECT uid, slot, user, turn, seq FROM ready;
    CREATE TABLE u AS SELECT slot, user, turn, count FROM ready_users;
    DROP TABLE ready; DROP TABLE ready_users;
    CREATE TABLE ready (uid TEXT PRIMARY KEY, slot TEXT NOT NULL, user TEXT NOT NULL, turn INTEGER NOT NULL,
      seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE INDEX ready_next ON ready (slot, user, turn, seq);
    CREATE TABLE ready_users (slot TEXT NOT NULL, user TEXT NOT NULL, turn INTEGER NOT NULL, count INTEGER NOT NULL,
      PRIMARY KEY (slot, user)) STRICT, WITHOUT ROWID;
    CREATE INDEX ready_users_next ON ready_users (slot, turn, user) WHERE count > 0;
    CREATE INDEX ready_users_turn ON ready_users (slot, turn);
    INSERT INTO ready SELECT * FROM r; INSERT INTO ready_users SELECT * FROM u; DROP TABLE r; DROP TABLE u;
    DROP INDEX outbox_due; ALTER TABLE outbox DROP COLUMN app; ALTER TABLE outbox DROP COLUMN channel;
    CREATE INDEX outbox_due ON outbox (next_at) WHERE state = 'queued';
    UPDATE facts SET value = '3' WHERE name = 'schema.runs';
  `);
  db.close();
  const desk = await startApp("desk");
  expect(await replyOf(desk, runId)).toBe("Answer of desk");
});
