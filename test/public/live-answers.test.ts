import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReceivedEvent, Result, SkeinClient } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { scriptedModel, temporaryFolder } from "../../src/entry-testing.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";
import { usesDatabases } from "../support/empty-store.ts";
import type { HeldRequest } from "../support/held-model.ts";
import { HeldModel } from "../support/held-model.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

type Live = Result<"chat.live">;
type Delta = Extract<ReceivedEvent, { event: "run.delta" }>;

const sessionKey = "agent:main:session:live";
const secret = `sk-ant-api03-${"a1B2".repeat(20)}`;

let folder: TemporaryFolder;
let model: HeldModel;
let gateway: WholeGateway;
beforeEach(async () => {
  folder = temporaryFolder("skein-live-");
  model = await HeldModel.start();
  gateway = await wholeGateway({ folder, config: model.config });
});
afterEach(async () => {
  await gateway.close();
  model.close();
  folder.remove();
});

async function ask(text: string, client: SkeinClient): Promise<string> {
  const { runId } = await client.call("chat.send", { sessionKey, message: text, idempotencyKey: text });
  return runId;
}

/** The text that a client would show: the texts from `chat.live`, followed by those from later events. */
class Page {
  readonly received: ReceivedEvent[] = [];
  readonly #stream: ReturnType<SkeinClient["events"]>;
  #live: Live | null = null;

  constructor(stream: ReturnType<SkeinClient["events"]>) {
    this.#stream = stream;
  }

  static async open(client: SkeinClient): Promise<Page> {
    const page = new Page(client.events({ keys: [sessionKey] }));
    await page.#stream.ready;
    void page.#follow();
    await page.readLive();
    return page;
  }

  async readLive(): Promise<Live> {
    this.#live = await this.#stream.call("chat.live", { sessionKey });
    return this.#live;
  }

  get deltas(): readonly Delta[] {
    const seq = this.#live?.seq ?? 0;
    return this.received.filter((each): each is Delta => each.event === "run.delta" && each.seq > seq);
  }

  /** Applied by offset only. */
  get text(): string {
    const { text, textOffset } = this.#live?.runs[0] ?? { text: "", textOffset: 0 };
    return this.deltas.reduce((shown, { payload: { offset, delta } }) => {
      expect(offset).toBe(textOffset + shown.length);
      return shown + delta;
    }, text);
  }

  async #follow(): Promise<void> {
    for await (const event of this.#stream) this.received.push(event);
  }
}

async function streamedText(client: SkeinClient): Promise<string> {
  const { runs } = await client.call("chat.live", { sessionKey });
  return runs[0]?.text ?? "";
}

/** Starts an answer and waits until its beginning has arrived. */
async function begin(client: SkeinClient, beginning: string, shown = beginning): Promise<HeldRequest> {
  await ask("hello", client);
  const request = await model.request(0);
  request.stream(beginning);
  await soon(() => streamedText(client)).toBe(shown);
  return request;
}

describe("an answer that is being written", () => {
  test("[LIV1] shows its text so far to a client that joins in the middle", async () => {
    const request = await begin(await gateway.client(), "Good mor");
    const page = await Page.open(await gateway.client());
    expect(page.text).toBe("Good mor");
    request.stream("ning, ");
    request.finish("world");
    await soon(() => page.received.some(({ event }) => event === "run.ended")).toBe(true);
    expect(page.text).toBe("Good morning, world");
    expect(page.deltas.every(({ payload }) => payload.step === 1)).toBe(true);
  });

  test("[LIV2] has offsets of the masked text for readers that get it masked", async () => {
    const request = await begin(await gateway.client(), `Key: ${secret.slice(0, 40)}`);
    const reader = await gateway.client(await gateway.token({ scopes: ["read"] }));
    const page = await Page.open(reader);
    expect(page.text).toBe("Key: ");
    request.stream(`${secret.slice(40)} and `);
    request.finish("more.");
    await soon(() => page.received.some(({ event }) => event === "run.ended")).toBe(true);
    expect(page.text).not.toContain(secret.slice(0, 40));
    expect(page.text).toMatch(/^Key: .+ and more\.$/);
    expect(page.text.length).toBeLessThan(secret.length);
  });

  test("[LIV3] is empty once its entry is written", async () => {
    const client = await gateway.client();
    const request = await begin(client, "Good mor");
    request.finish("ning");
    await soon(async () => (await client.call("chat.live", { sessionKey })).runs).toEqual([]);
    const { messages } = await client.call("chat.history", { sessionKey });
    expect(JSON.stringify(messages.at(-1))).toContain("Good morning");
  });

  test("[LIV4] starts again at offset 0 after a retry", async () => {
    const client = await gateway.client();
    await client.call("sessions.create", { key: sessionKey });
    const page = await Page.open(await gateway.client());
    const first = await begin(client, "A first try");
    first.breakOff();
    const second = await model.request(1);
    expect(await page.readLive()).toMatchObject({ runs: [{ step: 1, attempt: 2, text: "" }] });
    second.stream("The second");
    await soon(() => page.text).toBe("The second");
    second.finish(" try");
  });
});

test.skipIf(usesDatabases())(
  "[LIV5] a run in another process shows the text that it has stored",
  async () => {
    const client = await gateway.client();
    const desk = "agent:desk:session:live";
    const skein = await createSkein({
      dir: gateway.root,
      config: join(folder.path, "skein.yaml"),
      agents: [defineAgent({ id: "desk", model: "held/model" })],
    });
    const { runId } = await skein.session({ sessionKey: desk }).accept("hello");
    const request = await model.request(0);
    // The text is stored about once a second, when another piece arrives.
    const read = async () => {
      request.stream("more ");
      return (await client.call("chat.live", { sessionKey: desk })).runs[0];
    };
    await soon(async () => (await read())?.text).toMatch(/^more /);
    expect(await read()).toMatchObject({ runId, state: "running", isStreaming: false, textOffset: 0 });
    await skein.close({ graceMs: 0 });
  },
);

test("[LIV6] a tool call is shown until it has a result", async () => {
  const dir = join(folder.path, "tools");
  const [began, result] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const look = defineTool({
    name: "look",
    description: "Looks something up.",
    execute: () => {
      began.resolve();
      return result.promise;
    },
  });
  const script = scriptedModel([{ calls: [{ name: "look", id: "c1" }] }, { text: "Found." }]);
  const skein = await createSkein({
    ...{ dir, config: null, quiet: true, models: { "rehearsal/script": script } },
    agents: [defineAgent({ id: "main", model: "rehearsal/script", tools: [look] })],
  });
  const mounted = await mountOverHttp(skein, dir);
  const { runId } = await skein.session({ sessionKey }).accept("hello");
  await began.promise;
  const tools = [{ toolCallId: "c1", toolName: "look", arguments: {}, since: expect.any(Number) }];
  expect(await mounted.call("chat.live", { sessionKey })).toMatchObject({ runs: [{ runId, tools }] });
  result.resolve("here");
  await skein.ended(runId);
  expect((await mounted.call("chat.live", { sessionKey })).runs).toEqual([]);
  await mounted.close();
  await skein.close();
});
