import { globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { usesDatabases } from "../support/empty-store.ts";
import type { Family, Parts } from "../support/family.ts";
import { call, gate, results, withParts } from "../support/family.ts";
import { closeLater, closeAll as closeMcp, connected } from "../support/mcp-client.ts";
import { closeAll, newFolder } from "../support/skein.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

afterEach(closeAll);
afterEach(closeMcp);

const main = "agent:main:main";
const stores = [
  { where: "files", options: () => ({ dir: newFolder() }) },
  { where: "memory", options: () => ({}) },
];

/** Writes user messages to a session without calling a model. */
async function say(family: Family, sessionKey: string, ...texts: readonly string[]): Promise<void> {
  const { sessionId } = await family.make(sessionKey);
  const items = texts.map((content) => ({
    draft: { type: "message", message: { role: "user", content } } as const,
  }));
  await family.skein.store.sessions.append({ agentId: "main" }, sessionId, items);
}

describe("a child by the label from its parent", () => {
  const spawn = (more: object = {}) =>
    call("sessions_spawn", { task: "Stay", label: "helper", mode: "session", background: false, ...more });
  const send = call("sessions_send", { label: "helper", message: "How many?", timeoutSeconds: 600 });

  test.each([
    { asker: "self", agent: { visibility: "self" as const }, more: {} },
    { asker: "sandboxed", agent: { sandboxed: true }, more: {} },
    { asker: "sandboxed, child of another agent", agent: { sandboxed: true }, more: { agentId: "other" } },
    { asker: "tree, child of another agent", agent: {}, more: { agentId: "other" } },
  ])("[TLK14] is reached by sessions_send: $asker", async ({ agent, more }) => {
    const family = await withParts(
      { Begin: [spawn(more), send, { text: "Done." }], Stay: [{ text: "I stay." }, { text: "Twelve." }] },
      {
        agent: { visibility: "tree", subagents: { allowAgents: ["other"] }, ...agent },
        others: [{ id: "other", sandboxed: true }],
      },
    );
    await family.skein.session().send("Begin").result;
    expect(results(family.asked("Begin")[2])).toMatchObject([{ status: "ok", reply: "Twelve." }]);
  });

  test.each(["self", "tree"] as const)(
    "[TLK15] an unrelated session's label is not: %s",
    async (visibility) => {
      const family = await withParts({ Begin: [send, { text: "Done." }] }, { agent: { visibility } });
      const { sessionId } = await family.make("agent:main:session:b");
      await family.skein.store.sessions.patch({ agentId: "main" }, sessionId, { label: "helper" });
      await family.skein.session().send("Begin").result;
      const [result] = results(family.asked("Begin")[1]);
      expect(result?.status).toBe("forbidden");
    },
  );
});

describe("the session `global`, whose key names no agent", () => {
  const open = (parts: Parts) =>
    withParts(parts, {
      settings: { session: { scope: "global" } },
      agent: { subagents: { allowAgents: [] } },
      others: [{ id: "desk", visibility: "agent", subagents: { allowAgents: ["clerk"] } }, { id: "clerk" }],
    });

  test("spawns under the agent in its record, by the rules of that agent", async () => {
    const spawn = (more: object) => call("sessions_spawn", { task: "Work", background: false, ...more });
    const family = await open({
      Begin: [spawn({}), spawn({ agentId: "clerk" }), spawn({ agentId: "main" }), { text: "Done." }],
      Work: () => ({ text: "Twelve." }),
    });
    const session = family.skein.session({ agentId: "desk" });
    await session.send("Begin").result;
    expect(await session.record()).toMatchObject({ key: "global", agentId: "desk" });
    expect(family.asked("Begin").flatMap((request) => results(request))).toMatchObject([
      { status: "ok", result: "Twelve." },
      { status: "ok", result: "Twelve." },
      { status: "forbidden" },
    ]);
    const children = (await family.skein.runs.list()).filter(({ session }) =>
      session.key.includes(":subagent:"),
    );
    const agentIds = children.map(({ session }) => session.key.split(":")[1]).toSorted();
    expect(agentIds).toEqual(["clerk", "desk"]);
  });

  test("sends as the agent in its record", async () => {
    const send = (agentId: string) =>
      call("sessions_send", {
        sessionKey: `agent:${agentId}:session:b`,
        message: "How many?",
        timeoutSeconds: 600,
      });
    const family = await open({
      Begin: [send("desk"), send("main"), { text: "Done." }],
      "How many?": () => ({ text: "Twelve." }),
    });
    for (const agentId of ["desk", "main"]) await family.make(`agent:${agentId}:session:b`);
    await family.skein.session({ agentId: "desk" }).send("Begin").result;
    expect(family.asked("Begin").flatMap((request) => results(request))).toMatchObject([
      { status: "ok", reply: "Twelve." },
      { status: "forbidden" },
    ]);
    const page = await family.skein.sessions.history({ sessionKey: "agent:desk:session:b" });
    expect(JSON.stringify(page.messages[0])).toContain("global");
  });
});

describe("sessions_spawn {tools}", () => {
  test("[TLK16] names every tool that the child was not granted", async () => {
    const { tool } = gate();
    const tools = ["gate", "sessions_list", "cron*", "group:sessions", "wether"];
    const family = await withParts(
      {
        Begin: [call("sessions_spawn", { task: "Work", tools, background: false }), { text: "Done." }],
        Work: [{ text: "Done." }],
      },
      { agent: { tools: [tool], subagents: { tools: { deny: ["gate"] } } } },
    );
    await family.skein.session().send("Begin").result;
    const [result] = results(family.asked("Begin")[1]);
    const note = String(result?.note);
    for (const name of ["gate", "sessions_list", "sessions_send", "session_search", "cron*", "wether"])
      expect(note).toContain(`"${name}"`);
    const offered = family.asked("Work")[0]?.tools?.map(({ name }) => name) ?? [];
    for (const name of offered) expect(note).not.toContain(`"${name}"`);
  });
});

describe("what a list omits", () => {
  test.each([
    { tool: "session_list", args: {} },
    { tool: "session_search", args: { query: "kyoto" } },
  ])("[TLK17] $tool reports hidden and visibility as sessions_list does", async ({ tool, args }) => {
    const family = await withParts({}, { agent: { visibility: "tree" } });
    await say(family, main, "kyoto");
    await say(family, "agent:main:session:b", "kyoto");
    await say(family, "agent:main:session:c", "kyoto");
    const { hidden, visibility } = await family.call("sessions_list", {});
    expect({ hidden, visibility }).toEqual({ hidden: 2, visibility: { mode: "tree", sandboxed: false } });
    expect(await family.call(tool, args)).toMatchObject({ count: 1, hidden, visibility });
  });

  test.each([
    { tool: "session_list", args: {} },
    { tool: "session_search", args: { query: "kyoto" } },
  ])("[TLK17] $tool counts nothing for a sandboxed asker", async ({ tool, args }) => {
    const family = await withParts({}, { agent: { sandboxed: true } });
    await say(family, main, "kyoto");
    await say(family, "agent:main:session:b", "kyoto");
    const result = await family.call(tool, args);
    expect(result.visibility).toEqual({ mode: "tree", sandboxed: true });
    expect(result).not.toHaveProperty("hidden");
  });
});

test("sessions_list divides its space for messages fairly", async () => {
  const family = await withParts({});
  await say(family, main, "small 0");
  const small = Array.from({ length: 6 }, (_, index) => `agent:main:session:small${index}`);
  for (const key of small) await say(family, key, "a small message");
  // Listed first, and larger in total than the available space.
  const large = Array.from({ length: 6 }, (_, index) => `agent:main:session:large${index}`);
  const long = Array.from({ length: 20 }, () => "long words ".repeat(300));
  for (const key of large) await say(family, key, ...long);
  const { sessions } = await family.call("sessions_list", { messageLimit: 20 });
  const rows = sessions as { key: string; messages?: readonly object[]; messagesError?: string }[];
  for (const row of rows.filter(({ key }) => key.includes("small")))
    expect(row.messages?.length, row.key).toBeGreaterThan(0);
  const counts = rows.filter(({ key }) => key.includes("large")).map(({ messages }) => messages?.length ?? 0);
  expect(Math.min(...counts)).toBeGreaterThan(1);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  expect(Math.max(...counts)).toBeLessThan(20);
  for (const { key, messagesError } of rows)
    if (key.includes("large")) expect(messagesError).toMatch(/newest \d+ of 20/);
});

const ferry = "The ferry leaves from pier 9";
const trains = [1, 2, 3, 4].map((platform) => `The train leaves from platform ${platform}`);
const departures = [...trains.slice(0, 2), ferry, ...trains.slice(2)];

describe("a search for a sentence", () => {
  const question = "Which hotel did we book for the trip to Kyoto in April?";
  const answer = "The Kyoto booking is at Hotel Granvia, two nights.";
  const texts = [
    "Kyoto Kyoto Kyoto",
    answer,
    "Nothing about it.",
    "Good morning.",
    "上个月我们在京都订了酒店",
  ];
  const searched = async (options: object, query: string) => {
    const family = await withParts({}, options);
    await say(family, main, ...texts);
    const { hits } = await family.call("session_search", { query });
    return (hits as { snippet: string }[]).map(({ snippet }) => snippet);
  };

  test.each(stores)("[SR1] finds the answer that has some of its words: $where", async (place) => {
    const found = await searched(place.options(), question);
    expect(found[0]).toBe(answer);
    // Messages next to the answer can be hits too, others cannot.
    expect(found).not.toContain(texts[4]);
  });

  test.each(stores)("[SR1] finds Chinese by pairs of characters: $where", async (place) => {
    expect((await searched(place.options(), "京都的酒店叫什么名字？"))[0]).toBe(texts[4]);
  });

  test.each(stores)(
    "[SR1] an entry with a rare word comes before newer and older ones with a common word: $where",
    async (place) => {
      const family = await withParts({}, place.options());
      await say(family, main, ...departures);
      for (const limit of [1, 10]) {
        const { hits } = await family.call("session_search", { query: "ferry or train", limit });
        expect(hits).toHaveLength(Math.min(limit, departures.length));
        expect((hits as { snippet: string }[])[0]?.snippet).toBe(ferry);
      }
    },
  );

  test.each(stores)("[SR1] entries with all words come first: $where", async (place) => {
    const found = await searched(place.options(), "kyoto booking nights");
    expect(found).toEqual([answer, "Kyoto Kyoto Kyoto"]);
  });
});

test.skipIf(usesDatabases())("[TLK24] a session with a missing log loses only its own hits", async () => {
  const dir = newFolder();
  const family = await withParts({}, { dir });
  await say(family, main, "needle here");
  await say(family, "agent:main:session:b", "needle there");
  expect(await family.call("session_search", { query: "needle" })).toMatchObject({ count: 2 });
  const { sessionId } = await family.at("agent:main:session:b");
  await family.skein.close();
  for (const file of globSync(join(dir, `agents/main/sessions/${sessionId}*`))) rmSync(file);
  const again = await withParts({}, { dir });
  const found = await again.call("session_search", { query: "needle" });
  expect(found).toMatchObject({ count: 1, hits: [{ key: "main" }] });
});

describe("a guess at a masked word", () => {
  const texts = [
    "deploy on Monday, as ever, with all of the checks and a long list of what has to be looked at before",
    "The deploy of Friday: DB_PASSWORD=Tulip7Garden9x, and then some more words about what is to be done",
    "deploy on Tuesday, as ever, with all of the checks and a long list of what has to be looked at before",
    "deploy deploy",
  ];
  const words = ["tulip7garden9x", "rosebush8wall4q"];
  const found = async (search: (query: string, limit: number) => Promise<unknown>) => {
    for (const limit of [1, 2, 3, 4]) {
      const [right, wrong] = await Promise.all(words.map((word) => search(`deploy ${word}`, limit)));
      expect(right).toEqual(wrong);
      expect(right).toMatchObject({ count: limit });
    }
    expect(await search(words[0] ?? "", 10)).toMatchObject({ count: 0 });
  };

  test.each(stores)("[TLK24] changes no hit of session_search: $where", async ({ options }) => {
    const family = await withParts({}, options());
    await say(family, main, ...texts);
    await found((query, limit) => family.call("session_search", { query, limit }));
  });

  test("[TLK24] changes no hit of sessions.search for a reader", async () => {
    const folder = temporaryFolder("skein-guess-");
    const family = await withParts({}, { dir: join(folder.path, "root") });
    await say(family, main, ...texts);
    await family.skein.close();
    const gateway = await wholeGateway({ folder });
    const token = await gateway.token({ scopes: ["read"] });
    const search = async (query: string, limit: number, as?: string) => {
      const { body } = await gateway.rpc("sessions.search", { query, limit }, as);
      // The cursor contains the time of the call.
      const { nextCursor, ...found } = body as { readonly nextCursor?: string };
      return { ...found, hasMore: nextCursor !== undefined };
    };
    await found((query, limit) => search(query, limit, token));
    expect(await search(`deploy ${words[0]}`, 1)).toMatchObject({
      hits: [{ snippet: expect.stringContaining("Tulip7Garden9x") }],
    });
    await gateway.close();
    folder.remove();
  });
});

test.skipIf(usesDatabases())("[SR1] sessions search finds the answer to a question", async () => {
  const dir = newFolder();
  const { skein, ...family } = await withParts({}, { dir });
  await say({ skein, ...family }, main, "Hotel Granvia in Kyoto, two nights.", "Good morning.");
  await skein.close();
  const { out } = await run(["sessions", "search", "Which hotel did we book?", "--dir", dir, "--json"]);
  expect(JSON.parse(out)).toMatchObject({
    count: 2,
    hits: [{ snippet: expect.stringContaining("Granvia") }, { snippet: "Good morning." }],
  });
});

test.skipIf(usesDatabases())(
  "[SR1] sessions search lists an entry with a rare word before newer and older ones with a common word",
  async () => {
    const dir = newFolder();
    const family = await withParts({}, { dir });
    await say(family, main, ...departures);
    await family.skein.close();
    const { out } = await run(["sessions", "search", "ferry or train", "--dir", dir, "--json"]);
    const { hits } = JSON.parse(out) as { hits: { snippet: string }[] };
    expect(hits.map(({ snippet }) => snippet)[0]).toBe(ferry);
    expect(hits).toHaveLength(departures.length);
  },
);

const required = {
  sessions_list: [],
  sessions_history: ["sessionKey"],
  sessions_send: ["message"],
  sessions_spawn: ["task"],
  sessions_yield: [],
  session_status: [],
  subagents: [],
  session_search: ["query"],
  session_list: [],
  agents_list: [],
};

describe("the schemas of session tools", () => {
  test("a provider reads which fields are required", async () => {
    const family = await withParts({ Hello: [{ text: "Hi." }] });
    await family.skein.session().send("Hello").result;
    expect(requiredIn(family.asked("Hello")[0]?.tools)).toEqual(required);
  });

  test("an MCP client reads which fields are required", async () => {
    const gateway = await wholeGateway();
    closeLater(() => gateway.close());
    const client = await connected({ url: `${gateway.url}/mcp` }, "2025-11-25", { token: gateway.admin });
    expect(requiredIn((await client.listTools()).tools)).toEqual(required);
  });

  test("[TLK22] sessions_spawn accepts prompt instead of task", async () => {
    const family = await withParts({ Work: [{ text: "Done." }] });
    await family.make(main);
    const spawned = await family.call("sessions_spawn", { prompt: "Work", background: false });
    expect(spawned).toMatchObject({ status: "ok", result: "Done." });
    const refused = await family.call("sessions_spawn", {});
    expect(refused).toMatchObject({ status: "error", error: expect.stringContaining("task is required") });
  });
});

function requiredIn(tools: readonly object[] = []): Record<string, readonly string[]> {
  const listed = tools as { name: string; inputSchema: { required?: readonly string[] } }[];
  return Object.fromEntries(listed.map(({ name, inputSchema }) => [name, inputSchema.required ?? []]));
}
