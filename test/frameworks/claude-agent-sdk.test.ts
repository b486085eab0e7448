import { randomUUID } from "node:crypto";
import {
  deleteSession,
  forkSession,
  getSessionMessages,
  listSessions,
  listSubagents,
  renameSession,
} from "@anthropic-ai/claude-agent-sdk";
import type { ClaudeSessionStore, TranscriptEntry } from "skein/claude-agent-sdk";
import { openSessionStore } from "skein/claude-agent-sdk";
import type { Store } from "skein/store";
import { createStore } from "skein/store";
import { temporaryFolder } from "skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const home = temporaryFolder("skein-claude-");
let store: Store;
let users = 0;
beforeAll(async () => {
  store = await createStore({ dir: home.path, durability: "os" });
});
afterAll(async () => {
  await store.close();
  home.remove();
});

const newUser = () => `user-${++users}`;
const fresh = () => openSessionStore({ store, userId: newUser() });
const key = { projectKey: "-home-ann", sessionId: "11111111-1111-4111-8111-111111111111" };
const agent = { ...key, subpath: "subagents/agent-7" };

/** A conversation as Claude Code writes it: each line names the one before it. */
function transcript(...texts: string[]): TranscriptEntry[] {
  let parentUuid: string | null = null;
  return texts.map((text, index) => {
    const role = index % 2 === 0 ? "user" : "assistant";
    const content = role === "user" ? text : [{ type: "text", text }];
    const message = { role, content, ...(role === "user" ? {} : { id: `msg_${index}`, model: "claude-x" }) };
    const uuid = randomUUID();
    const entry = { type: role, uuid, parentUuid, timestamp: new Date(index * 1000).toISOString(), message };
    parentUuid = uuid;
    return { ...entry, sessionId: key.sessionId, cwd: "/home/ann", isSidechain: false, version: "2.1.0" };
  });
}

/** The 13 contracts that the SDK's repository describes for session stores. */
describe("[CAS1] the contracts of a session store", () => {
  const contracts: Record<string, (sessions: ClaudeSessionStore) => Promise<void>> = {
    "loads what was appended, in order": async (sessions) => {
      await sessions.append(key, [
        { type: "a", n: 1 },
        { type: "b", deep: { list: [1, null, "x"] } },
      ]);
      expect(await sessions.load(key)).toEqual([
        { type: "a", n: 1 },
        { type: "b", deep: { list: [1, null, "x"] } },
      ]);
    },
    "loads null for an unknown key": async (sessions) => {
      expect(await sessions.load(key)).toBeNull();
      await sessions.append(key, [{ type: "x" }]);
      expect(await sessions.load(agent)).toBeNull();
    },
    "keeps the order of several appends": async (sessions) => {
      for (let n = 0; n < 5; n++) await sessions.append(key, [{ type: "x", n }]);
      expect((await sessions.load(key))?.map(({ n }) => n)).toEqual([0, 1, 2, 3, 4]);
    },
    "ignores an empty append": async (sessions) => {
      await sessions.append(key, []);
      expect(await sessions.load(key)).toBeNull();
      await sessions.append(key, [{ type: "x" }]);
      await sessions.append(key, []);
      expect(await sessions.load(key)).toEqual([{ type: "x" }]);
    },
    "keeps sub-agents apart from the session": async (sessions) => {
      await sessions.append(key, [{ type: "main" }]);
      await sessions.append(agent, [{ type: "sub" }]);
      expect(await sessions.load(key)).toEqual([{ type: "main" }]);
      expect(await sessions.load(agent)).toEqual([{ type: "sub" }]);
    },
    "keeps projects apart": async (sessions) => {
      await sessions.append(key, [{ type: "one" }]);
      const elsewhere = { ...key, projectKey: "-home-bob" };
      expect(await sessions.load(elsewhere)).toBeNull();
      await sessions.append(elsewhere, [{ type: "two" }]);
      expect(await sessions.load(key)).toEqual([{ type: "one" }]);
      expect(await sessions.load(elsewhere)).toEqual([{ type: "two" }]);
      for (const { projectKey } of [key, elsewhere])
        expect(await sessions.listSessions(projectKey)).toHaveLength(1);
    },
    "lists the sessions of a project with their time": async (sessions) => {
      await sessions.append(key, [{ type: "x" }]);
      await sessions.append({ ...key, sessionId: "other" }, [{ type: "x" }]);
      await sessions.append({ ...key, projectKey: "elsewhere" }, [{ type: "x" }]);
      const listed = await sessions.listSessions(key.projectKey);
      expect(listed.map(({ sessionId }) => sessionId).toSorted()).toEqual([key.sessionId, "other"]);
      expect(listed.every(({ mtime }) => Number.isInteger(mtime) && mtime > 1e12)).toBe(true);
      expect(await sessions.listSessions("unknown")).toEqual([]);
    },
    "does not list sub-agents as sessions": async (sessions) => {
      await sessions.append(agent, [{ type: "sub" }]);
      expect(await sessions.listSessions(key.projectKey)).toEqual([]);
    },
    "deletes a session": async (sessions) => {
      await sessions.append(key, [{ type: "x" }]);
      await sessions.delete(key);
      expect(await sessions.load(key)).toBeNull();
      expect(await sessions.listSessions(key.projectKey)).toEqual([]);
    },
    "ignores the deletion of an unknown session": async (sessions) => {
      await expect(sessions.delete(key)).resolves.toBeUndefined();
    },
    "deletes the sub-agents with the session, and nothing else": async (sessions) => {
      const others = [
        { ...key, sessionId: "other" },
        { ...key, projectKey: "elsewhere" },
      ];
      for (const each of [key, agent, ...others]) await sessions.append(each, [{ type: "x" }]);
      await sessions.delete(key);
      expect(await sessions.load(agent)).toBeNull();
      expect(await sessions.listSubkeys(key)).toEqual([]);
      for (const each of others) expect(await sessions.load(each)).toEqual([{ type: "x" }]);
    },
    "deletes only the named sub-agent": async (sessions) => {
      await sessions.append(key, [{ type: "x" }]);
      const second = { ...key, subpath: "subagents/agent-8" };
      for (const each of [agent, second]) await sessions.append(each, [{ type: "sub" }]);
      await sessions.delete(agent);
      expect(await sessions.load(agent)).toBeNull();
      expect(await sessions.listSubkeys(key)).toEqual(["subagents/agent-8"]);
      expect(await sessions.load(key)).toEqual([{ type: "x" }]);
    },
    "lists the sub-agents of a session": async (sessions) => {
      await sessions.append(agent, [{ type: "sub" }]);
      await sessions.append({ ...key, sessionId: "other", subpath: "subagents/agent-8" }, [{ type: "sub" }]);
      expect(await sessions.listSubkeys(key)).toEqual(["subagents/agent-7"]);
      expect(await sessions.listSubkeys({ ...key, sessionId: "third" })).toEqual([]);
    },
  };
  test.each(Object.entries(contracts))("%s", async (_, contract) => contract(await fresh()));
});

describe("a session store of the Claude Agent SDK", () => {
  test("[CAS2] an entry that is appended again is stored once", async () => {
    const sessions = await fresh();
    const entries = transcript("one", "two", "three");
    await sessions.append(key, entries.slice(0, 2));
    await Promise.all([sessions.append(key, entries), sessions.append(key, entries)]);
    expect(await sessions.load(key)).toEqual(entries);
  });

  test("[CAS2] an entry whose append failed during a load is stored when it is appended again", async () => {
    const failed = Promise.withResolvers<never>();
    const loaded = Promise.withResolvers<void>();
    const [appending, loading] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let isFailing = false;
    let pages = 0;
    const held = new Proxy(store.sessions, {
      get: (target, name) => {
        if (isFailing && name === "append")
          return () => {
            appending.resolve();
            return failed.promise;
          };
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== "function") return member;
        return async (...args: unknown[]) => {
          const isLoad = isFailing && name === "page" && ++pages === 2;
          if (isLoad) {
            loading.resolve();
            await loaded.promise;
          }
          return member.apply(target, args) as unknown;
        };
      },
    });
    const sessions = await openSessionStore({
      store: { state: store.state, sessions: held },
      userId: newUser(),
    });
    const entries = transcript("one", "two");
    await sessions.append(key, entries.slice(0, 1));
    isFailing = true;
    const refused = expect(sessions.append(key, entries)).rejects.toThrow("no space");
    await appending.promise;
    const load = sessions.load(key);
    await loading.promise;
    failed.reject(new Error("no space"));
    await new Promise((resolve) => setImmediate(resolve));
    loaded.resolve();
    await Promise.all([refused, load]);
    isFailing = false;
    await sessions.append(key, entries);
    expect(await sessions.load(key)).toEqual(entries);
  });

  test("[CAS3] a transcript is listed, searched and shown as a session, with its sub-agents as children", async () => {
    const userId = newUser();
    const sessions = await openSessionStore({ store, userId });
    await sessions.append(key, transcript("Where is the ferry?", "At the north pier."));
    await sessions.append(key, [{ type: "custom-title", customTitle: "Ferries", sessionId: key.sessionId }]);
    await sessions.append(agent, transcript("Look up the pier", "Found it."));
    const scope = { userId, agentId: "claude-code" };
    const { sessions: listed } = await store.sessions.list(scope, { sort: "created" });
    const main = listed.find(({ meta }) => meta.spawnedBy === undefined);
    expect(main).toMatchObject({
      name: "Ferries",
      cwd: "/home/ann",
      digest: { summary: "Where is the ferry?" },
    });
    expect(listed.find(({ meta }) => meta.spawnedBy === main?.key)?.meta.displayName).toBe(agent.subpath);
    const { hits } = await store.search.search(scope, { text: "north pier" });
    expect(hits[0]).toMatchObject({ sessionId: main?.sessionId, role: "assistant" });
    const context = await store.sessions.context(scope, main?.sessionId ?? "");
    expect(context?.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(context?.model).toMatchObject({ provider: "anthropic", modelId: "claude-x" });
  });

  test("[CAS4] the SDK lists, reads, renames, forks and deletes the sessions", async () => {
    const userId = newUser();
    const sessionStore = await openSessionStore({ store, userId });
    const options = { dir: home.path, sessionStore };
    const projectKey = home.path.replaceAll(/[^a-zA-Z0-9]/g, "-");
    const place = { ...key, projectKey };
    await sessionStore.append(place, transcript("Where is the ferry?", "At the north pier."));
    await sessionStore.append({ ...place, subpath: agent.subpath }, transcript("Look it up", "Done"));
    const [listed] = await listSessions(options);
    expect(listed).toMatchObject({ sessionId: key.sessionId, firstPrompt: "Where is the ferry?" });
    expect(await getSessionMessages(key.sessionId, options)).toHaveLength(2);
    expect(await listSubagents(key.sessionId, options)).toEqual(["7"]);
    await renameSession(key.sessionId, "Ferries", options);
    const fork = await forkSession(key.sessionId, { ...options, title: "Copy" });
    const titles = (await listSessions(options)).map(({ summary }) => summary);
    expect(titles.toSorted()).toEqual(["Copy", "Ferries"]);
    expect(await getSessionMessages(fork.sessionId, options)).toHaveLength(2);
    await deleteSession(key.sessionId, options);
    expect((await listSessions(options)).map(({ sessionId }) => sessionId)).toEqual([fork.sessionId]);
  });

  test("[CAS5] a session of another user is not found", async () => {
    const [ann, bob] = [await fresh(), await fresh()];
    await ann.append(key, [{ type: "x" }]);
    expect(await bob.load(key)).toBeNull();
    expect(await bob.listSessions(key.projectKey)).toEqual([]);
    await bob.delete(key);
    expect(await ann.load(key)).toEqual([{ type: "x" }]);
  });

  test("[CAS3] the usage of an answer that is written as several entries is counted once", async () => {
    const userId = newUser();
    const sessions = await openSessionStore({ store, userId });
    const [question, answer] = transcript("Where?", "Thinking") as [TranscriptEntry, TranscriptEntry];
    const usage = { input_tokens: 100, output_tokens: 10 };
    const parts = ["First", "second"].map((text, index) => ({
      ...answer,
      uuid: randomUUID(),
      message: {
        id: "msg_1",
        role: "assistant",
        model: "claude-x",
        content: [{ type: "text", text }],
        usage,
      },
      timestamp: new Date(index).toISOString(),
    }));
    await sessions.append(key, [question]);
    for (const part of parts) await sessions.append(key, [part]);
    const [session] = (await store.sessions.list({ userId, agentId: "claude-code" }, {})).sessions;
    expect(session?.digest.totalTokens).toBe(110);
  });

  test("[CAS3] a rewound conversation is a branch of the session", async () => {
    const userId = newUser();
    const sessions = await openSessionStore({ store, userId });
    const first = transcript("by train", "Fine.", "first class", "Booked.");
    const [second] = transcript("second class");
    await sessions.append(key, [...first, { ...second, type: "user", parentUuid: first[1]?.uuid }]);
    const scope = { userId, agentId: "claude-code" };
    const [session] = (await store.sessions.list(scope, {})).sessions;
    const context = await store.sessions.context(scope, session?.sessionId ?? "");
    expect(context?.messages.map(({ content }) => JSON.stringify(content))).toEqual([
      expect.stringContaining("by train"),
      expect.stringContaining("Fine."),
      expect.stringContaining("second class"),
    ]);
    expect(session?.digest.entries).toBeGreaterThan(5);
  });

  test("[CAS3] a conversation that is rewound to a hidden entry within one append is a branch", async () => {
    const userId = newUser();
    const sessions = await openSessionStore({ store, userId });
    const first = transcript("by train", "Fine.", "first class", "Booked.");
    const [hidden, ...second] = transcript("hidden", "second class", "Booked, too.");
    const attachment = { ...hidden, type: "attachment", message: undefined, parentUuid: first[1]?.uuid };
    await sessions.append(key, first.slice(0, 2));
    const asked = { ...second[0], type: "user", message: { role: "user", content: "second class" } };
    await sessions.append(key, [...first.slice(2), attachment as TranscriptEntry, asked as TranscriptEntry]);
    const scope = { userId, agentId: "claude-code" };
    const [session] = (await store.sessions.list(scope, {})).sessions;
    const context = await store.sessions.context(scope, session?.sessionId ?? "");
    expect(context?.messages.map(({ content }) => JSON.stringify(content))).toEqual([
      expect.stringContaining("by train"),
      expect.stringContaining("Fine."),
      expect.stringContaining("second class"),
    ]);
  });

  test("[CAS1] a deletion that was interrupted is completed when it is repeated", async () => {
    const userId = newUser();
    const refusing = new Proxy(store.sessions, {
      get: (target, name) => {
        if (name === "purge") return () => Promise.reject(new Error("The process has ended."));
        const member = Reflect.get(target, name) as unknown;
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    const interrupted = await openSessionStore({ store: { ...store, sessions: refusing }, userId });
    const other = { ...key, sessionId: "other" };
    for (const each of [key, agent, other]) await interrupted.append(each, transcript("one"));
    for (const each of [key, other]) await expect(interrupted.delete(each)).rejects.toThrow("has ended");
    const trashed = async () => (await store.sessions.trashed({ userId })).map((session) => session.key);
    expect(await trashed()).toHaveLength(3);
    const sessions = await openSessionStore({ store, userId });
    await sessions.delete(key);
    expect(await trashed()).toEqual([expect.stringContaining("other")]);
    await sessions.append(other, transcript("two"));
    await sessions.delete(other);
    expect(await trashed()).toEqual([]);
  });

  test("[CAS4] a summary that was not written is completed when sessions are listed", async () => {
    const userId = newUser();
    let isFailing = false;
    const state = new Proxy(store.state, {
      get: (target, name) => {
        if (isFailing && name === "set") return () => Promise.reject(new Error("The process has ended."));
        const member = Reflect.get(target, name) as unknown;
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    const interrupted = await openSessionStore({ store: { ...store, state }, userId });
    const title = (customTitle: string) => [{ type: "custom-title", customTitle, sessionId: key.sessionId }];
    await interrupted.append(key, [...transcript("one", "two"), ...title("Old")]);
    isFailing = true;
    await expect(interrupted.append(key, title("New"))).rejects.toThrow("has ended");
    const sessions = await openSessionStore({ store, userId });
    const [summary] = await sessions.listSessionSummaries(key.projectKey);
    expect(JSON.stringify(summary?.data)).toContain("New");
  });
});
