import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fakeApp } from "../../test/support/fake-app.ts";
import { called, readingWorld, said } from "../../test/support/reading-tools.ts";
import { sessionSearch } from "./session-search.ts";
import type { ToolResult } from "./session-tool.ts";

const hitsOf = (result: ToolResult) => result.hits as Record<string, unknown>[];
const token = `ghp_${"a1B2c3".repeat(6)}`;

describe("session_search", () => {
  test("[TLK24] finds messages, with short keys, best first", async () => {
    const world = readingWorld();
    const { sessionId } = await world.create("agent:main:main", {}, [
      said("three days in Kyoto"),
      said("京都へ"),
    ]);
    await world.create("agent:research:main", {}, called("c1"));
    const result = await world.ask(sessionSearch, { query: "kyoto days" });
    expect(result.count).toBe(1);
    expect(hitsOf(result)[0]).toMatchObject({
      key: "main",
      sessionId,
      role: "user",
      snippet: "three days in Kyoto",
      time: expect.any(Number),
      entryId: expect.any(String),
    });
    expect(await world.ask(sessionSearch, { query: "京" })).toMatchObject({ count: 1 });
    expect(await world.ask(sessionSearch, { query: "result", agentId: "research" })).toMatchObject({
      hits: [{ key: "agent:research:main", role: "toolResult" }],
    });
    expect(await world.ask(sessionSearch, { query: "kyoto", role: "assistant" })).toMatchObject({
      count: 0,
      hits: [],
    });
  });

  test("returns the best match of each session on request", async () => {
    const world = readingWorld();
    for (const key of ["agent:main:main", "agent:main:session:trip"])
      await world.create(key, {}, [said("Kyoto, and then home"), said("Kyoto")]);
    expect(await world.ask(sessionSearch, { query: "kyoto" })).toMatchObject({ count: 4 });
    const best = await world.ask(sessionSearch, { query: "kyoto", bySession: true });
    expect(best.count).toBe(2);
    expect(new Set(hitsOf(best).map(({ sessionId }) => sessionId)).size).toBe(2);
  });

  test("[TLK24] a secret at the edge of a snippet is not shown in part", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 260 }),
        fc.integer({ min: 0, max: 260 }),
        async (left, right) => {
          const world = readingWorld();
          const padding = (length: number) => "w ".repeat(200).slice(0, length);
          await world.create("agent:main:main", {}, [
            said(`${token} ${padding(left)} needle ${padding(right)} ${token}`),
          ]);
          const [hit] = hitsOf(await world.ask(sessionSearch, { query: "needle" }));
          expect(hit?.snippet).toContain("needle");
          expect(hit?.snippet).not.toMatch(/a1B2c3a|c3a1B2c3/);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("[TLK24] a private key, and an argument whose name marks a secret, are not shown", async () => {
    const world = readingWorld();
    const body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC".repeat(20).replace(/(.{64})/g, "$1\n");
    const pem = `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----`;
    await world.create("agent:main:main", {}, [said(`${pem} needle`)]);
    await world.create("agent:main:session:s", {}, called("c1", { password: "tigerlily", note: "haystack" }));
    expect(hitsOf(await world.ask(sessionSearch, { query: "needle" }))[0]?.snippet).not.toContain("MIIEvQ");
    const [hit] = hitsOf(await world.ask(sessionSearch, { query: "haystack" }));
    expect(hit?.snippet).toContain("***");
    expect(hit?.snippet).not.toContain("tigerlily");
  });

  test("[TLK24] guessing a secret finds nothing", async () => {
    const world = readingWorld({ secrets: ["tigerlily"] });
    await world.create("agent:main:main", {}, [said(`the word is tigerlily, the key ${token}`)]);
    expect(await world.ask(sessionSearch, { query: "tigerlily" })).toMatchObject({ count: 0, hits: [] });
    expect(await world.ask(sessionSearch, { query: token })).toMatchObject({ count: 0, hits: [] });
    expect(await world.ask(sessionSearch, { query: "word" })).toMatchObject({ count: 1 });
  });

  test("[TLK24] a masked word does not count toward all words", async () => {
    const world = readingWorld({ secrets: ["tigerlily"] });
    await world.create("agent:main:main", {}, [
      said("the word is tigerlily"),
      said("one of the word list is rosemary, as far as anybody remembers it now"),
    ]);
    const { hits } = await world.ask(sessionSearch, { query: "word rosemary tigerlily" });
    expect(hits).toHaveLength(2);
    const both = await world.ask(sessionSearch, { query: "word tigerlily" });
    const guessed = await world.ask(sessionSearch, { query: "word wrongguess" });
    expect(both.hits).toEqual(guessed.hits);
  });

  test("[TLK24] searches sessions that may be read, not those that may be listed", async () => {
    const world = readingWorld({ reach: { history: { treeOf: "agent:main:main", agentIds: [] } } });
    await world.create("agent:main:main", {}, [said("needle one")]);
    await world.create("agent:main:user:bob", {}, [said("needle two")]);
    expect(await world.ask(sessionSearch, { query: "needle" })).toMatchObject({ hits: [{ key: "main" }] });
    expect(
      await world.ask(sessionSearch, { query: "needle", sessionKey: "agent:main:user:bob" }),
    ).toMatchObject({ status: "forbidden", code: "tree_visibility_restricted" });
    expect(await world.ask(sessionSearch, { query: "needle", sessionKey: "current" })).toMatchObject({
      count: 1,
    });
  });

  test("times limit the search, in either format; a blank query without times is refused", async () => {
    const world = readingWorld();
    await world.create("agent:main:main", {}, [said("needle early")]);
    world.now += 60_000;
    const middle = world.now;
    await world.create("agent:main:session:s", {}, [said("needle late")]);
    const found = async (args: object) =>
      hitsOf(await world.ask(sessionSearch, { query: "needle", ...args })).map(({ key }) => key);
    expect(await found({ since: middle })).toEqual(["session:s"]);
    expect(await found({ until: new Date(middle).toISOString() })).toEqual(["main"]);
    await expect(found({ since: "last week" })).rejects.toMatchObject({
      path: "since",
      message: expect.stringContaining('since is not a valid time: "last week". Use an ISO 8601 string'),
    });
    await expect(found({ query: "  " })).rejects.toMatchObject({ path: "query", code: "invalid_arguments" });
  });

  test("[ACC4] a sandboxed asker is not informed how far the index of all sessions is behind", async () => {
    for (const sandboxed of [false, true]) {
      const world = readingWorld({ sandboxed });
      const behind = fakeApp({
        ...world.deps,
        store: { ...world.store, search: { search: async () => ({ hits: [], behind: 3 }) } },
      });
      const call = { userId: null, agentId: "main", session: null, sandboxed } as never;
      const { result } = await sessionSearch.execute({ query: "x" }, call, behind);
      expect(result.indexing).toEqual(sandboxed ? undefined : { behind: 3 });
    }
  });
});
