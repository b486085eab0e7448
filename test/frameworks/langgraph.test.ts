import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Annotation, END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver, BaseStore } from "@langchain/langgraph-checkpoint";
import { SkeinSaver, SkeinStore } from "skein/langgraph";
import type { Store } from "skein/store";
import { createStore } from "skein/store";
import { temporaryFolder } from "skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const home = temporaryFolder("skein-langgraph-");
let store: Store;
beforeAll(async () => {
  store = await createStore({ dir: home.path, durability: "os" });
});
afterAll(async () => {
  await store.close();
  home.remove();
});

const scope = (userId: string) => ({ userId, agentId: "langgraph" });
const at = (thread_id: string, checkpoint_id?: string) => ({
  configurable: { thread_id, ...(checkpoint_id === undefined ? {} : { checkpoint_id }) },
});

/** A graph with one node that answers the last message. */
function answering(checkpointer: BaseCheckpointSaver, memory?: BaseStore) {
  return new StateGraph(MessagesAnnotation)
    .addNode("answer", ({ messages }) => ({
      messages: [new AIMessage(`You said: ${messages.at(-1)?.text}`)],
    }))
    .addEdge(START, "answer")
    .compile({ checkpointer, ...(memory === undefined ? {} : { store: memory }) });
}

const say = (text: string) => ({ messages: [new HumanMessage(text)] });

/** The texts on the active branch of the session that shows a thread. */
async function shownTexts(saver: SkeinSaver, userId: string, threadId: string): Promise<string[]> {
  const session = await saver.findSession(threadId);
  const { messages = [] } = (await store.sessions.context(scope(userId), session?.sessionId ?? "")) ?? {};
  return messages.map(({ content }) =>
    typeof content === "string"
      ? content
      : (content as { text?: string }[]).map((block) => block.text).join(""),
  );
}

describe("a graph with a SkeinSaver", () => {
  test("[LGR2] a thread continues in another process", async () => {
    await answering(new SkeinSaver({ store, userId: "ann" })).invoke(say("one"), at("trip"));
    const other = await createStore({ dir: home.path, durability: "os" });
    const graph = answering(new SkeinSaver({ store: other, userId: "ann" }));
    await graph.invoke(say("two"), at("trip"));
    await other.close();
    const here = answering(new SkeinSaver({ store, userId: "ann" }));
    const { values } = await here.getState(at("trip"));
    expect((values.messages as AIMessage[]).map((message) => message.text)).toEqual([
      "one",
      "You said: one",
      "two",
      "You said: two",
    ]);
  });

  test("[LGR3] the messages of a thread are listed, searched and shown as a session", async () => {
    const saver = new SkeinSaver({ store, userId: "bea" });
    await answering(saver).invoke(say("Plan three days in Kyoto"), at("kyoto"));
    expect(await shownTexts(saver, "bea", "kyoto")).toEqual([
      "Plan three days in Kyoto",
      "You said: Plan three days in Kyoto",
    ]);
    const { sessions } = await store.sessions.list(scope("bea"), { channels: ["langgraph"] });
    expect(sessions.map(({ meta, digest }) => [meta.displayName, digest.summary])).toEqual([
      ["kyoto", "Plan three days in Kyoto"],
    ]);
    const { hits } = await store.search.search(scope("bea"), { text: "three days" });
    expect(hits.map(({ role }) => role).toSorted()).toEqual(["assistant", "user"]);
  });

  test("[LGR4] continuing from an earlier checkpoint is a branch of the session", async () => {
    const saver = new SkeinSaver({ store, userId: "cat" });
    const graph = answering(saver);
    await graph.invoke(say("by train"), at("t"));
    const { config } = await graph.getState(at("t"));
    await graph.invoke(say("first class"), at("t"));
    await graph.invoke(say("second class"), config);
    const kept = ["by train", "You said: by train"];
    expect(await shownTexts(saver, "cat", "t")).toEqual([...kept, "second class", "You said: second class"]);
    const session = await saver.findSession("t");
    const page = await store.sessions.page(scope("cat"), session?.sessionId ?? "", {
      along: "all",
      limit: 1000,
    });
    const shown = page?.entries.filter(({ type }) => type === "message") ?? [];
    expect(shown).toHaveLength(6);
  });

  test.each([
    ["MemorySaver", () => new MemorySaver()],
    ["SkeinSaver", () => new SkeinSaver({ store, userId: "forker" })],
  ])(
    "[LGR4] with a %s, a branch does not take a value that another branch has cleared",
    async (_, create) => {
      const State = Annotation.Root({
        n: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
      });
      let last = 3;
      let calls = 0;
      const work = () => {
        calls += 1;
        return { n: 1 };
      };
      const graph = new StateGraph(State)
        .addNode("work", work)
        .addEdge(START, "work")
        .addConditionalEdges("work", ({ n }) => (n >= last ? END : "work"), ["work", END])
        .compile({ checkpointer: create() });
      await graph.invoke({ n: 0 }, at("loop"));
      const history = await Array.fromAsync(graph.getStateHistory(at("loop")));
      const first = history.find(({ next, values }) => next.includes("work") && values.n === 0);
      last = 1;
      calls = 0;
      await graph.invoke(null, first?.config as ReturnType<typeof at>);
      expect((await graph.getState(at("loop"))).next).toEqual([]);
      await graph.invoke(null, at("loop"));
      expect(calls).toBe(1);
    },
  );

  test("[LGR3] tool calls, their results and the usage are shown", async () => {
    const saver = new SkeinSaver({ store, userId: "dee" });
    const calling = new StateGraph(MessagesAnnotation)
      .addNode("call", () => ({
        messages: [
          new AIMessage({
            content: "I will look.",
            tool_calls: [{ id: "c1", name: "weather", args: { city: "Kyoto" } }],
            usage_metadata: { input_tokens: 12, output_tokens: 3, total_tokens: 15 },
            response_metadata: { model_name: "m-1", model_provider: "acme" },
          }),
          new ToolMessage({ content: "Sunny", tool_call_id: "c1", name: "weather" }),
        ],
      }))
      .addEdge(START, "call")
      .compile({ checkpointer: saver });
    await calling.invoke(say("How is the weather?"), at("t"));
    const session = await saver.findSession("t");
    const { messages = [], model } =
      (await store.sessions.context(scope("dee"), session?.sessionId ?? "")) ?? {};
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult"]);
    expect(messages[1]).toMatchObject({ usage: { input: 12, output: 3 }, stopReason: "toolUse" });
    expect(model).toMatchObject({ provider: "acme", modelId: "m-1" });
  });

  test("[LGR5] a thread of another user is not found", async () => {
    await answering(new SkeinSaver({ store, userId: "eve" })).invoke(say("secret"), at("shared name"));
    const other = new SkeinSaver({ store, userId: "fay" });
    expect(await other.getTuple(at("shared name"))).toBeUndefined();
    for await (const _ of other.list({})) expect.unreachable();
    await other.deleteThread("shared name");
    const { values } = await answering(new SkeinSaver({ store, userId: "eve" })).getState(at("shared name"));
    expect(values.messages).toHaveLength(2);
  });

  test("[LGR6] the size of a thread grows in proportion to its messages", async () => {
    const saver = new SkeinSaver({ store, userId: "gus" });
    const graph = answering(saver);
    const bytesAfter = async (turns: number) => {
      for (let turn = 0; turn < turns; turn++) await graph.invoke(say("x".repeat(1000)), at("long"));
      const { sessions } = await store.sessions.list(scope("gus"), {});
      return sessions[0]?.digest.bytes ?? 0;
    };
    const first = await bytesAfter(20);
    const second = (await bytesAfter(20)) - first;
    expect(second).toBeLessThan(first * 1.25);
  });

  test("[LGR7] a deleted thread leaves nothing, and its ID can be used again", async () => {
    const saver = new SkeinSaver({ store, userId: "hal" });
    await answering(saver).invoke(say("old"), at("t"));
    await saver.deleteThread("t");
    expect(await saver.findSession("t")).toBeNull();
    expect(await store.sessions.trashed(scope("hal"))).toEqual([]);
    await answering(saver).invoke(say("new"), at("t"));
    expect(await shownTexts(saver, "hal", "t")).toEqual(["new", "You said: new"]);
  });

  test("[LGR7] a deletion that was interrupted is completed when it is repeated", async () => {
    await answering(new SkeinSaver({ store, userId: "hana" })).invoke(say("old"), at("t"));
    const session = await new SkeinSaver({ store, userId: "hana" }).findSession("t");
    // The first step of a deletion.
    await store.sessions.remove(scope("hana"), session?.sessionId ?? "");
    await new SkeinSaver({ store, userId: "hana" }).deleteThread("t");
    expect(await store.sessions.trashed(scope("hana"))).toEqual([]);
  });

  test("[LGR8] two writers of one thread lose no checkpoint", async () => {
    const savers = [1, 2].map(() => new SkeinSaver({ store, userId: "ivy" }));
    const ids = Array.from({ length: 20 }, (_, index) => `0000-${String(index).padStart(4, "0")}`);
    const metadata = { source: "loop", step: 0, parents: {} } as const;
    const rest = { v: 4, ts: new Date(0).toISOString(), channel_versions: {}, versions_seen: {} };
    await Promise.all(
      ids.map((id, index) =>
        savers[index % 2]?.put(at("t"), { ...rest, id, channel_values: {} }, metadata, {}),
      ),
    );
    const found: unknown[] = [];
    for await (const { checkpoint } of savers[0]?.list(at("t")) ?? []) found.push(checkpoint.id);
    expect(found.toReversed()).toEqual(ids);
  });

  test("[LGR9] a call without a thread ID says how to pass one", async () => {
    const saver = new SkeinSaver({ store });
    await expect(answering(saver).invoke(say("hello"))).rejects.toThrow(/thread_id/);
    await expect(saver.putWrites({ configurable: { thread_id: "t" } }, [], "task")).rejects.toThrow(
      /A checkpoint needs checkpoint_id in "configurable", which contains thread_id\. Pass it to the graph/,
    );
  });
});

describe("a SkeinStore", () => {
  test("[LGR10] items are stored, listed, filtered, ranked and deleted", async () => {
    const memory = new SkeinStore({ store, userId: "ann" });
    await memory.put(["trips", "kyoto"], "hotel", { text: "quiet hotels near the river", stars: 4 });
    await memory.put(["trips", "kyoto"], "food", { text: "noodles", stars: 5 });
    await memory.put(["trips", "oslo"], "hotel", { text: "anything", stars: 2 });
    await memory.put(["tripsters"], "a", { text: "not under trips" });
    expect(await memory.get(["trips", "kyoto"], "food")).toMatchObject({
      key: "food",
      namespace: ["trips", "kyoto"],
      value: { text: "noodles", stars: 5 },
    });
    const keys = async (...call: Parameters<SkeinStore["search"]>) =>
      (await memory.search(...call)).map(({ namespace, key }) => `${namespace.at(-1)}/${key}`);
    expect((await keys(["trips"])).toSorted()).toEqual(["kyoto/food", "kyoto/hotel", "oslo/hotel"]);
    expect((await keys(["trips"], { filter: { stars: { $gte: 4 } } })).toSorted()).toEqual([
      "kyoto/food",
      "kyoto/hotel",
    ]);
    expect(await keys(["trips"], { query: "hotels by the river", limit: 1 })).toEqual(["kyoto/hotel"]);
    expect(await memory.listNamespaces({ prefix: ["trips"] })).toEqual([
      ["trips", "kyoto"],
      ["trips", "oslo"],
    ]);
    expect(await memory.listNamespaces({ maxDepth: 1 })).toEqual([["trips"], ["tripsters"]]);
    await memory.delete(["trips", "oslo"], "hotel");
    expect(await memory.get(["trips", "oslo"], "hotel")).toBeNull();
    expect(await new SkeinStore({ store, userId: "bea" }).search([])).toEqual([]);
    await expect(memory.put([], "key", {})).rejects.toThrow(/Namespace cannot be empty/);
  });

  test("[LGR10] after its session has been deleted, items are stored in a new one", async () => {
    const memory = new SkeinStore({ store, userId: "cleo" });
    await memory.put(["a"], "k", { n: 1 });
    const { sessions } = await store.sessions.list(scope("cleo"), { archived: true });
    for (const { sessionId } of sessions) await store.sessions.remove(scope("cleo"), sessionId);
    expect(await memory.get(["a"], "k")).toBeNull();
    await memory.put(["a"], "k", { n: 2 });
    expect(await memory.get(["a"], "k")).toMatchObject({ value: { n: 2 } });
  });

  test("[LGR10] an update keeps the time of creation", async () => {
    const memory = new SkeinStore({ store, userId: "bob" });
    await memory.put(["a"], "k", { n: 1 });
    const before = await memory.get(["a"], "k");
    await memory.put(["a"], "k", { n: 2 });
    expect(await memory.get(["a"], "k")).toMatchObject({ value: { n: 2 }, createdAt: before?.createdAt });
  });
});
