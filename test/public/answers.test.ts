import { randomUUID } from "node:crypto";
import { text as readText } from "node:stream/consumers";
import Type from "typebox";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { defineTool } from "../../src/index.ts";
import type { GatewayStart } from "../support/gateway-process.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import { HeldModel, LoopbackServer } from "../support/held-model.ts";
import { closeAll, withScript } from "../support/skein.ts";
import { soon } from "../support/soon.ts";
import { signatureOf } from "../support/webhook-signature.ts";

const secret = "a secret of the desk";
const servers: { close(): void }[] = [];
const gateways: GatewayProcess[] = [];
let home: TemporaryFolder;

beforeEach(() => {
  home = temporaryFolder();
});
afterEach(async () => {
  await closeAll();
  for (const gateway of gateways.splice(0)) await gateway.stop("SIGKILL");
  for (const server of servers.splice(0)) server.close();
  home.remove();
});

/** A gateway process with a webhook channel. Its model answers when the test allows it. */
async function startDesk() {
  const delivered: { readonly runId: string; readonly text: string }[] = [];
  const model = await HeldModel.start();
  const outbound = await LoopbackServer.listen((request, response) => {
    void readText(request).then((body) => {
      const { runId, text } = JSON.parse(body) as { runId: string; text: string };
      delivered.push({ runId, text });
      response.writeHead(200).end();
    });
  });
  servers.push(model, outbound);
  const desk = `{ type: webhook, secret: "${secret}", url: "${outbound.url}" }`;
  const open = async (start?: GatewayStart) => {
    const gateway = await GatewayProcess.start(home.path, start);
    gateways.push(gateway);
    return gateway;
  };
  const gateway = await open({
    config: `${model.config}queue: { mode: steer }\nchannels: { desk: ${desk} }\n`,
  });
  return { gateway, delivered, model, reopen: () => open() };
}

async function say(gateway: GatewayProcess, text: string, more: object = {}): Promise<string> {
  const body = JSON.stringify({ text, peer: "17", ...more });
  const [timestamp, messageId] = [String(Math.floor(Date.now() / 1000)), randomUUID()];
  const answer = await fetch(`${gateway.url}/channels/desk/inbound`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-skein-timestamp": timestamp,
      "x-skein-message-id": messageId,
      "x-skein-signature": signatureOf(secret, { timestamp, messageId, body }),
    },
    body,
  });
  expect(answer.status).toBe(202);
  return ((await answer.json()) as { runId: string }).runId;
}

const waitFor = (gateway: GatewayProcess, runId: string) =>
  gateway.call("agent.wait", { runId, timeoutMs: 150_000, userId: "desk:17" });

describe("the name of a peer", () => {
  test("[TLK11] in a webhook's message is stored, and the model reads it in a group", async () => {
    const { gateway, model } = await startDesk();
    await say(gateway, "Hello all", { peerName: "Ann", group: "G1" });
    const inGroup = await model.request(0);
    expect(inGroup.lastUserText).toContain("Ann: Hello all");
    inGroup.finish("Hello Ann.");
    const { sessions } = await gateway.call("sessions.list", { allUsers: true });
    const [{ key = "", userId = "" } = {}] = sessions;
    const { messages } = await gateway.call("chat.history", { sessionKey: key, userId });
    expect(messages[0]).toMatchObject({
      role: "user",
      content: "Hello all",
      provenance: { sourceChannel: "desk", sourcePeer: "17", sourcePeerName: "Ann" },
    });
    await say(gateway, "Hello you", { peerName: "Ann" });
    const direct = await model.request(1);
    expect(direct.lastUserText).toMatch(/(^|\n)Hello you/);
    expect(direct.lastUserText).not.toContain("Ann: ");
    direct.finish("Hello.");
  });
});

describe("input that arrives while the final answer streams", () => {
  test.each(["stop", "length"] as const)(
    "[ANS1] [ANS2] [ANS9] each question of a webhook gets its own answer, ended by %s",
    async (reason) => {
      const { gateway, delivered, model } = await startDesk();
      const first = await say(gateway, "First question");
      const answering = await model.request(0);
      answering.stream("The first ");
      const second = await say(gateway, "Second question");
      answering.finish("answer.", reason);
      (await model.request(1)).finish("The second answer.");
      expect(await waitFor(gateway, first)).toMatchObject({ state: "ok", reply: "The first answer." });
      expect(await waitFor(gateway, second)).toMatchObject({ state: "ok", reply: "The second answer." });
      await soon(() => delivered).toEqual([
        { runId: first, text: "The first answer." },
        { runId: second, text: "The second answer." },
      ]);
    },
  );

  test("[ANS1] [ANS2] [ANS9] both answers are delivered if the process dies in the middle of the first", async () => {
    const { gateway, delivered, model, reopen } = await startDesk();
    const first = await say(gateway, "First question");
    (await model.request(0)).stream("The first ");
    const second = await say(gateway, "Second question");
    await gateway.stop("SIGKILL");
    const again = await reopen();
    (await model.request(1)).finish("The first answer.");
    (await model.request(2)).finish("The second answer.");
    expect(await waitFor(again, first)).toMatchObject({ state: "ok", reply: "The first answer." });
    expect(await waitFor(again, second)).toMatchObject({ state: "ok", reply: "The second answer." });
    await soon(() => delivered).toEqual([
      { runId: first, text: "The first answer." },
      { runId: second, text: "The second answer." },
    ]);
  });

  /**
   * Opens a Skein instance and sends it "Second" once the model has given a matching answer, before that answer is
   * written.
   */
  async function withSecond(
    script: Parameters<typeof withScript>[0],
    isMoment: (answer: number) => boolean,
    agent: Parameters<typeof withScript>[1] = {},
  ) {
    const opened = await withScript(script, agent);
    const session = opened.skein.session({ sessionId: "a" });
    const second = Promise.withResolvers<string>();
    let answers = 0;
    opened.skein.hooks.on("llm_output", async () => {
      if (isMoment(++answers)) second.resolve((await session.accept("Second", { queueMode: "steer" })).runId);
    });
    return { ...opened, session, second: second.promise };
  }

  test("[ANS2] it is the next run in the library too", async () => {
    const it = await withSecond([{ text: "One." }, { text: "Two." }], (answer) => answer === 1);
    expect((await it.session.send("First").result).reply).toBe("One.");
    const ended = await it.skein.ended(await it.second);
    expect(ended).toMatchObject({ state: "ok", mergedInto: null, outcome: { reply: "Two." } });
    expect(await it.lines("a")).toEqual([
      "user: First",
      "assistant: One.",
      "user: Second",
      "assistant: Two.",
    ]);
  });

  test("[ANS3] it does not join a turn that corrects its structured output", async () => {
    const fits = '{"count": 2}';
    const it = await withSecond([{ text: "No JSON." }, { text: fits }, { text: "Two." }], (n) => n === 1);
    const schema = { type: "object", properties: { count: { type: "integer" } }, required: ["count"] };
    const { output, reply } = await it.session.send("First", { schema }).result;
    expect({ output, reply }).toEqual({ output: { count: 2 }, reply: fits });
    const ended = await it.skein.ended(await it.second);
    expect(ended).toMatchObject({ state: "ok", mergedInto: null, outcome: { reply: "Two." } });
  });

  test("[ANS3] it joins the turn while the model still calls tools", async () => {
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: Type.Object({}),
      execute: async () => "rain",
    });
    const script = [{ calls: [{ name: "look", id: "c1" }] }, { text: "Both." }];
    const it = await withSecond(script, (answer) => answer === 1, { tools: [look] });
    const first = it.session.send("First");
    expect((await first.result).reply).toBe("Both.");
    expect(await it.skein.ended(await it.second)).toMatchObject({
      state: "merged",
      mergedInto: first.runId,
      outcome: { reply: "Both." },
    });
  });
});
