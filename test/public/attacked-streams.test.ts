import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { afterEach, describe, expect, test } from "vitest";
import type { Json } from "../../src/entry-store.ts";
import type { Message, Skein, ToolContext } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";
import type { StandIn, StandInReply } from "../support/provider-stand-in.ts";
import { startStandIn } from "../support/provider-stand-in.ts";
import { closeAll, newFolder, withScript } from "../support/skein.ts";
import { textOf } from "../support/text.ts";

const skeins: Skein[] = [];
const standIns: StandIn[] = [];
afterEach(async () => {
  await Promise.all(skeins.splice(0).map((skein) => skein.close({ graceMs: 0 })));
  await Promise.all(standIns.splice(0).map((standIn) => standIn.close()));
  await closeAll();
});

const stores = [
  { where: "files", place: () => ({ dir: newFolder() }) },
  { where: "memory", place: () => ({ memory: true }) },
];

describe("a model that never stops", () => {
  const maxAnswerBytes = 32 * 1024 * 1024;
  /** The bytes buffered in the sockets between the stand-in and the reader, plus the frames around the pieces. */
  const slackBytes = 16 * 1024 * 1024;
  const piece = "y".repeat(64 * 1024);
  const chunk = (delta: object, finish: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices })}\n\n`;
  };
  const call = (fields: object) => ({ tool_calls: [{ index: 0, ...fields }] });

  /** Yields three times the maximum size of an answer. Without a limit, the run would succeed. */
  function* endless(first: string, each: string, last: string): Generator<string> {
    yield first;
    for (let sent = 0; sent < 3 * maxAnswerBytes; sent += each.length) yield each;
    yield last;
  }
  const [beforeLine = "", afterLine = ""] = chunk({ content: "|" }).split("|");
  const done = `${chunk({}, "stop")}data: [DONE]\n\n`;
  const streams: [string, () => Iterable<string>][] = [
    ["text", () => endless(chunk({ content: "It begins. " }), chunk({ content: piece }), done)],
    ["thinking", () => endless(chunk({ content: "" }), chunk({ reasoning_content: piece }), done)],
    [
      "the arguments of a call",
      () =>
        endless(
          chunk(call({ id: "c1", type: "function", function: { name: "look", arguments: '{"a":"' } })),
          chunk(call({ function: { arguments: piece } })),
          `${chunk(call({ function: { arguments: '"}' } }))}${chunk({}, "tool_calls")}data: [DONE]\n\n`,
        ),
    ],
    ["one line", () => endless(beforeLine, piece, `${afterLine}${done}`)],
  ];

  /** A reply from the stand-in, and how many of its characters were requested. */
  function counted(chunks: Iterable<string>, rest: object = {}): { reply: StandInReply; sent: () => number } {
    let sent = 0;
    function* counting() {
      for (const each of chunks) {
        sent += each.length;
        yield each;
      }
    }
    return { reply: { chunks: counting(), ...rest }, sent: () => sent };
  }

  async function open(dir: string, standIn: StandIn): Promise<Skein> {
    const models = { m: { contextWindow: 200_000 } };
    const skein = await createSkein({
      dir,
      app: "desk",
      quiet: true,
      env: {},
      config: { models: { providers: { local: { baseUrl: standIn.url, apiKey: "any-key", models } } } },
      agents: [
        defineAgent({
          id: "main",
          model: "local/m",
          tools: [defineTool({ name: "look", description: "Looks.", execute: () => "Seen." })],
        }),
      ],
    });
    skeins.push(skein);
    return skein;
  }

  async function answersIn(skein: Skein): Promise<Extract<Message, { role: "assistant" }>[]> {
    const page = await skein.store.sessions.page({}, "s", { along: "branch", limit: 100 });
    return (page?.entries ?? []).flatMap((entry) =>
      entry.type === "message" && entry.message.role === "assistant" ? [entry.message] : [],
    );
  }

  test.each(streams)("[ATG20] is stopped: %s", async (_, chunks) => {
    const { reply, sent } = counted(chunks());
    const standIn = await startStandIn("openai", (_request, index) =>
      index === 0 ? reply : { text: "Here I am." },
    );
    standIns.push(standIn);
    const dir = newFolder();
    const skein = await open(dir, standIn);
    const error = await skein
      .session({ sessionId: "s" })
      .send("hello")
      .result.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "model_failed", message: expect.stringMatching(/32 MB.*model/s) });
    expect(sent()).toBeLessThan(maxAnswerBytes + slackBytes);
    await skein.close();
    const again = await open(dir, standIn);
    expect((await again.session({ sessionId: "s" }).send("and now?").result).reply).toBe("Here I am.");
    expect(standIn.requests).toHaveLength(2);
  });

  test("[ATG20] the beginning of its answer is kept", async () => {
    const standIn = await startStandIn("openai", () => counted(streams[0]?.[1]() ?? []).reply);
    standIns.push(standIn);
    const skein = await open(newFolder(), standIn);
    await expect(skein.session({ sessionId: "s" }).send("hello").result).rejects.toThrow();
    const [answer] = await answersIn(skein);
    const text = textOf(answer?.content ?? []);
    expect(answer?.stopReason).toBe("error");
    expect(text).toMatch(/^It begins\. y+\n\[\d+ more characters were not stored\]$/);
    expect(text.length).toBeLessThan(101_000);
  });

  test("[ATG20] an error page that never ends is stopped", async () => {
    const page = counted(endless("<html>", `${piece}\n`, "</html>"), {
      status: 400,
      contentType: "text/html",
    });
    const standIn = await startStandIn("openai", () => page.reply);
    standIns.push(standIn);
    const skein = await open(newFolder(), standIn);
    await expect(skein.session({ sessionId: "s" }).send("hello").result).rejects.toMatchObject({
      code: "model_failed",
    });
    expect(page.sent()).toBeLessThan(maxAnswerBytes + slackBytes);
  });
});

describe("the order of a search", () => {
  const found = async (skein: Skein) => {
    const asker = { userId: "ann", sessionKey: "agent:box:main" };
    const { result } = await skein.callTool("session_search", { query: "zebra yak" }, asker);
    return (result as { hits: { snippet: string }[] }).hits.map(({ snippet }) => snippet.split(" ")[0]);
  };
  const hidden = [
    ["another user", { userId: "ben", sessionKey: "agent:main:main" }],
    ["the same user, out of the asker's sight", { userId: "ann", sessionKey: "agent:main:main" }],
  ] as const;
  const cases = stores.flatMap(({ where, place }) =>
    hidden.map(([whose, session]) => [where, whose, place, session] as const),
  );

  test.each(cases)("[ATG23] in %s does not depend on a session of %s", async (_, __, place, session) => {
    const skein = await createSkein({
      ...place(),
      config: null,
      quiet: true,
      agents: [
        defineAgent({ id: "main", model: "rehearsal/basic" }),
        defineAgent({ id: "box", sandboxed: true, model: "rehearsal/basic" }),
      ],
    });
    skeins.push(skein);
    const said = (...texts: string[]) =>
      texts.map((content, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content }) as const);
    await skein
      .session({ userId: "ann", sessionKey: "agent:box:main" })
      .append(said("zebra stands here", "yak stands here", "filler words of no use", "more filler words"));
    const before = await found(skein);
    expect(before).toHaveLength(2);
    for (const word of ["yak", "zebra", "zebra"]) {
      await skein.session(session).append(said(`${word} note`, "A long answer, ".repeat(50)));
      expect(await found(skein)).toEqual(before);
    }
  });

  test("[SR1] is the same in files and in memory", async () => {
    const texts = [
      "yak yak yak and nothing else",
      "zebra",
      `zebra yak ${"in a long text ".repeat(40)}`,
      "the zebra and the yak",
      "zebra zebra, and again a zebra, in a text of some length that speaks of one animal",
      "yak, once, in a text of some length that speaks of many other animals and where they live",
      "no animal here",
      "yak and zebra, in the other order",
    ];
    const orders = stores.map(async ({ place }) => {
      const agents = [defineAgent({ id: "main", model: "rehearsal/basic" })];
      const skein = await createSkein({ ...place(), config: null, quiet: true, agents });
      skeins.push(skein);
      const session = skein.session({ sessionKey: "agent:main:main" });
      for (const content of texts) await session.append([{ role: "user", content }]);
      const search = async (query: string) => {
        const { result } = await skein.callTool("session_search", { query, limit: 20 }, {});
        return (result as { hits: { snippet: string }[] }).hits.map(({ snippet }) => snippet.slice(0, 20));
      };
      return [await search("zebra yak"), await search("yak"), await search("the zebra of some length")];
    });
    const [files, memory] = await Promise.all(orders);
    // A sentence also finds the messages next to those with its words.
    expect(files?.map((order) => order.length)).toEqual([7, 5, 8]);
    expect(files).toEqual(memory);
  });
});

describe("the state of a session used by concurrent calls", () => {
  interface Visits {
    readonly key: "visits";
    count: number;
    save(): Json;
    load(value: Json | null): void;
  }
  const visits = (): Visits => ({
    key: "visits",
    count: 0,
    save() {
      return this.count;
    },
    load(value) {
      this.count = typeof value === "number" ? value : 0;
    },
  });
  const sessionKey = "agent:main:main";
  const countOf = ({ state }: ToolContext) => state.visits as unknown as Visits;

  /** A tool that changes the state, reports that it is running, and returns when the test allows it. */
  function heldTool(name: string, by: number) {
    const entered = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let calls = 0;
    const tool = defineTool({
      name,
      description: "Adds to the state.",
      execute: async (_, context: ToolContext) => {
        calls += 1;
        if (by !== 0) countOf(context).count += by;
        entered.resolve();
        await released.promise;
        return "done";
      },
    });
    return { tool, entered: entered.promise, release: released.resolve, calls: () => calls };
  }
  const add = defineTool({
    name: "add",
    description: "Adds 100 to the state.",
    execute: (_, context: ToolContext) => {
      countOf(context).count += 100;
      return "done";
    },
  });
  /** Calls the tool that the message names. */
  const obeying = ({ prompt }: LanguageModelV4CallOptions) => {
    if (prompt.at(-1)?.role === "tool") return { text: "Done." };
    const [, name] = /do:(\w+)/.exec(JSON.stringify(prompt.findLast(({ role }) => role === "user"))) ?? [];
    return name === undefined ? { text: "Yes." } : { calls: [{ name }] };
  };
  const agentOf = (...held: ReturnType<typeof heldTool>[]) => ({
    tools: [add, ...held.map(({ tool }) => tool)],
    state: [visits],
  });
  const stored = async (skein: Skein) => {
    const { sessionId = "" } = (await skein.session({ sessionKey }).record()) ?? {};
    return (await skein.store.state.get({ agentId: "main" }, sessionId, "visits"))?.value;
  };

  test("[ATG25] a run and an invokeTool keep the changes of both", async () => {
    const slow = heldTool("slow", 1);
    const { skein, reported } = await withScript(obeying, agentOf(slow));
    const turn = skein.session({ sessionKey }).send("do:slow");
    await slow.entered;
    await skein.invokeTool("add", {}, { sessionKey });
    expect(await stored(skein)).toBe(101);
    slow.release();
    await turn.result;
    await skein.session({ sessionKey }).send("do:add").result;
    expect(await stored(skein)).toBe(201);
    expect(reported).toEqual([]);
  });

  test("[ATG25] two calls of invokeTool keep the changes of both", async () => {
    const slow = heldTool("slow", 1);
    const { skein } = await withScript(obeying, agentOf(slow));
    await skein.session({ sessionKey }).send("hello").result;
    const calls = [1, 2].map(() => skein.invokeTool("slow", {}, { sessionKey }));
    await slow.entered;
    await skein.invokeTool("add", {}, { sessionKey });
    slow.release();
    for (const { isError } of await Promise.all(calls)) expect(isError).toBe(false);
    expect(await stored(skein)).toBe(102);
  });

  /** Opens two instances on one folder. Like two processes, they do not share their calls. Only the first executes runs. */
  async function openTwo(held: ReturnType<typeof heldTool>) {
    const dir = newFolder();
    const one = await withScript(obeying, agentOf(held), { dir, app: "desk" });
    await one.skein.session({ sessionKey }).send("hello").result;
    const two = await withScript(obeying, agentOf(held), { dir, app: "desk", workers: false });
    return { one, two };
  }

  test("a call that does not change the state does not write it", async () => {
    const look = heldTool("look", 0);
    const { one, two } = await openTwo(look);
    const looking = one.skein.invokeTool("look", {}, { sessionKey });
    await look.entered;
    await two.skein.invokeTool("add", {}, { sessionKey });
    look.release();
    expect(await looking).toMatchObject({ isError: false });
    expect(await stored(one.skein)).toBe(100);
  });

  test("a conflict after the call says that the tool ran and that its state was not saved", async () => {
    const slow = heldTool("slow", 1);
    const { one, two } = await openTwo(slow);
    const call = one.skein.invokeTool("slow", {}, { sessionKey });
    await slow.entered;
    await two.skein.invokeTool("add", {}, { sessionKey });
    slow.release();
    const error = (await call.catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ code: "conflict" });
    expect(error.message).toMatch(/^The tool slow ran, but its change to the state "visits" was not saved/);
    expect(error.message).not.toMatch(/nothing was changed/i);
    expect(slow.calls()).toBe(1);
    expect(await stored(one.skein)).toBe(100);
  });

  test("a conflict after a run says that its state was not saved", async () => {
    const slow = heldTool("slow", 1);
    const { one, two } = await openTwo(slow);
    const turn = one.skein.session({ sessionKey }).send("do:slow");
    await slow.entered;
    await two.skein.invokeTool("add", {}, { sessionKey });
    slow.release();
    const { runId } = await turn.result;
    const [error] = [...one.reported, ...two.reported];
    expect(error).toMatchObject({ code: "conflict" });
    expect(String(error)).toContain(
      `The run ${runId} ended, but its change to the state "visits" was not saved`,
    );
  });
});
