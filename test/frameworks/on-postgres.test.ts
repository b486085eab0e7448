import { randomUUID } from "node:crypto";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { openSessionStore } from "skein/claude-agent-sdk";
import { SkeinSaver, SkeinStore } from "skein/langgraph";
import { openPostgres } from "skein/postgres";
import type { Store } from "skein/store";
import type { TestContext } from "vitest";
import { afterEach, describe, expect, test } from "vitest";
import { migrator, serverFor } from "../support/postgres-server.ts";

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

/** Two processes' stores on one database. */
async function openTwo(context: TestContext): Promise<[Store, Store]> {
  const server = await serverFor(context);
  await server.createRoles();
  const database = await server.createDatabase();
  opened.push(() => database.drop());
  const open = async () => {
    const backend = await openPostgres({ url: database.url(migrator) });
    const store = backend.openStore();
    opened.push(async () => {
      await store.close();
      await backend.close();
    });
    return store;
  };
  return [await open(), await open()];
}

describe("on PostgreSQL", () => {
  test("[LGR2] [LGR3] [LGR10] a thread and the memory of a graph continue in another process", async (context) => {
    const [here, there] = await openTwo(context);
    const ask = async (store: Store, text: string) => {
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("answer", ({ messages }) => ({ messages: [new AIMessage(`Message ${messages.length}`)] }))
        .addEdge(START, "answer")
        .compile({ checkpointer: new SkeinSaver({ store, userId: "ann" }) });
      const thread = { configurable: { thread_id: "kyoto" } };
      const { messages } = await graph.invoke({ messages: [new HumanMessage(text)] }, thread);
      return messages.map((message) => message.text);
    };
    await ask(here, "Plan three days in Kyoto");
    expect(await ask(there, "Shorter")).toEqual([
      "Plan three days in Kyoto",
      "Message 1",
      "Shorter",
      "Message 3",
    ]);
    const { hits } = await here.search.search({ userId: "ann", agentId: "langgraph" }, { text: "shorter" });
    expect(hits).toMatchObject([{ role: "user", snippet: "Shorter" }]);
    await new SkeinStore({ store: here, userId: "ann" }).put(["trips"], "hotel", { text: "quiet", stars: 4 });
    const memory = new SkeinStore({ store: there, userId: "ann" });
    expect(await memory.search(["trips"], { filter: { stars: 4 } })).toMatchObject([{ key: "hotel" }]);
  });

  test("[CAS1] [CAS2] [CAS3] [CAS5] a session of the Claude Agent SDK continues in another process", async (context) => {
    const [here, there] = await openTwo(context);
    const key = { projectKey: "-home-ann", sessionId: randomUUID() };
    const entryOf = (text: string, parentUuid: string | null) => ({
      type: "user",
      uuid: randomUUID(),
      parentUuid,
      timestamp: new Date(0).toISOString(),
      sessionId: key.sessionId,
      message: { role: "user", content: text },
    });
    const first = entryOf("Where is the ferry?", null);
    const second = entryOf("At which pier?", first.uuid);
    const sessions = await openSessionStore({ store: here, userId: "ann" });
    const others = await openSessionStore({ store: there, userId: "ann" });
    await sessions.append(key, [first]);
    await Promise.all([sessions, others].map((each) => each.append(key, [first, second])));
    expect(await others.load(key)).toEqual([first, second]);
    expect(await (await openSessionStore({ store: there, userId: "bea" })).load(key)).toBeNull();
    const { hits } = await there.search.search({ userId: "ann", agentId: "claude-code" }, { text: "pier" });
    expect(hits).toMatchObject([{ snippet: "At which pier?" }]);
  });
});
