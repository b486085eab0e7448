import { afterEach, describe, expect, test } from "vitest";
import type { Family } from "../support/family.ts";
import { withParts } from "../support/family.ts";
import type { MountedOverHttp } from "../support/mounted-gateway.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import { closeAll, newFolder } from "../support/skein.ts";

const opened: MountedOverHttp[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  await closeAll();
});

const key = "agent:main:session:notes";

async function openNotes(...texts: readonly string[]): Promise<{ family: Family; gateway: MountedOverHttp }> {
  const dir = newFolder();
  const family = await withParts({}, { dir });
  await say(family, ...texts);
  const gateway = await mountOverHttp(family.skein, dir);
  opened.push(gateway);
  return { family, gateway };
}

/** Writes user messages under consecutive IDs. */
async function say(family: Family, ...texts: readonly string[]): Promise<void> {
  const { sessionId } = await family.make(key);
  const items = texts.map((content) => ({
    draft: { type: "message", message: { role: "user", content } } as const,
  }));
  await family.skein.store.sessions.append({}, sessionId, items);
}

describe("sessions.search", () => {
  test("[FND1] finds an entry on an inactive branch and marks it", async () => {
    const { family, gateway } = await openNotes("the first harbor", "the second harbor");
    const { entries } = await gateway.call("sessions.entries", { key });
    await gateway.call("sessions.branch", { key, entryId: entries[0]?.id ?? null });
    await say(family, "the third harbor");
    const { hits } = await gateway.call("sessions.search", { query: "harbor" });
    expect(hits.map(({ snippet, active }) => `${snippet} ${active}`).toSorted()).toEqual([
      "the first harbor true",
      "the second harbor false",
      "the third harbor true",
    ]);
  });

  test("[FND2] shows each hit once, page by page, while more are written", async () => {
    const { family, gateway } = await openNotes(
      ...Array.from({ length: 7 }, (_, at) => `harbor number ${at}`),
    );
    const seen: string[] = [];
    for (let cursor: string | undefined = "", pages = 0; cursor !== undefined && pages < 9; pages++) {
      const from: { cursor?: string } = cursor === "" ? {} : { cursor };
      const page = await gateway.call("sessions.search", { query: "harbor", limit: 2, ...from });
      seen.push(...page.hits.map(({ snippet }) => snippet));
      cursor = page.nextCursor;
      if (pages === 0) await say(family, "harbor harbor harbor");
    }
    expect(seen.toSorted()).toEqual(Array.from({ length: 7 }, (_, at) => `harbor number ${at}`));
  });

  test.each([
    ["harbor", "the Harbor and the harbor", ["Harbor", "harbor"]],
    ["old harbor", "an old harbor, harbors", ["old", "harbor", "harbors"]],
    ["count", "call tokenCount now", ["Count"]],
    ["京都", "去京都旅行，京都很好", ["京都", "京都"]],
    ["京都旅行", "去京都旅行", ["京都旅行"]],
    ["ＨＡＲＢＯＲ", "a harbor", ["harbor"]],
  ])("names the places of the words of %j in %j", async (query, text, words) => {
    const { gateway } = await openNotes(text);
    const { hits } = await gateway.call("sessions.search", { query });
    const [{ snippet, ranges } = { snippet: "", ranges: [] }] = hits;
    expect(ranges.map(([start, end]) => snippet.slice(start, end))).toEqual(words);
  });

  test("shows the words around a match, beginning with a whole one", async () => {
    const { gateway } = await openNotes(`${"unrelated words ".repeat(20)}near the harbor wall`);
    const { hits } = await gateway.call("sessions.search", { query: "harbor" });
    expect(hits[0]?.snippet).toMatch(/^…(unrelated|words) .* near the harbor wall$/);
  });

  test("[SR1] finds the reply to a question, although the reply does not repeat its words", async () => {
    const { gateway } = await openNotes(
      "Nothing happened today",
      "Maya: which class did you sign up for in the end?",
      "Tom: pottery, on Tuesdays",
      "The bakery was closed again",
      "We painted the fence",
    );
    const { hits } = await gateway.call("sessions.search", {
      query: "What class has Tom been signing up for?",
    });
    const snippets = hits.map(({ snippet }) => snippet);
    expect(snippets[0]).toBe("Tom: pottery, on Tuesdays");
    expect(snippets).toContain("Maya: which class did you sign up for in the end?");
    const words = await gateway.call("sessions.search", { query: "classes" });
    expect(words.hits).toHaveLength(1);
  });

  /** Far enough apart that no entry counts as the neighbor of another one. */
  const apart = (...texts: readonly string[]) =>
    texts.flatMap((text) => [text, "a fence", "a roof", "a bakery", "a bridge", "a garden"]);
  const searchIn = async (...texts: readonly string[]) => {
    const { gateway } = await openNotes(...texts);
    return async (query: string) =>
      (await gateway.call("sessions.search", { query })).hits.map(({ snippet }) => snippet);
  };

  test("[SR1] ignores words without a meaning of their own, unless there are no others", async () => {
    const found = await searchIn("it was in the box and not on the shelf", "harbor at night");
    expect(await found("the harbor")).toEqual(["harbor at night"]);
    expect(await found("the")).toEqual(["it was in the box and not on the shelf"]);
  });

  test.each([
    ["signed", "Tom is signing up", "Tom has a sign-language sibling"],
    ["boxes", "a box of nails", "a boxer dog"],
    ["decision", "we made two decisions", "a decimal point"],
    ["go", "Maya went home", "Maya got home"],
    ["children", "the kids are asleep", "the chill is over"],
  ])("[SR1] finds %j in another form: %j", async (query, text, other) => {
    const found = await searchIn(...apart(other, text));
    expect((await found(query))[0]).toBe(text);
  });

  test.each([
    ["user name", "call getUserName first"],
    ["retry", "set max_retry_count to 3"],
    ["config", "it is in store.config.json now"],
    ["parse header", "the HTTPHeader is what parseAll reads"],
    ["getUserName", "call GETUSERNAME first"],
  ])("[SR1] finds an identifier by the parts %j: %j", async (query, text) => {
    const found = await searchIn("the userland, retrying and configurable headers", text);
    expect((await found(query))[0]).toBe(text);
  });

  test("[SR1] lists entries with words close together first", async () => {
    const close = "one harbor master two three four five six seven";
    const far = "one harbor two three four five six seven master";
    const found = await searchIn(...apart(close, far));
    expect(await found("harbor master")).toEqual([close, far]);
  });

  test("[SR1] prefers the part of a long session that has more of the query's words", async () => {
    const ferries = ["the ferry is late", ...apart("Porto"), "the ferry is full"];
    const found = await searchIn(
      ...ferries,
      ...Array.from({ length: 8 }, () => apart("quiet")).flat(),
      "the ferry is late",
    );
    expect(await found("ferry Porto late")).toEqual([
      "the ferry is late",
      "Porto",
      "the ferry is late",
      "the ferry is full",
    ]);
  });

  test("[SR1] lists the newer of equal entries first", async () => {
    const { gateway } = await openNotes(...apart("harbor", "harbor", "harbor"));
    const { entries } = await gateway.call("sessions.entries", { key });
    const { hits } = await gateway.call("sessions.search", { query: "harbor" });
    expect(hits.map(({ entryId }) => entryId)).toEqual(
      entries
        .map(({ id }) => id)
        .filter((_, at) => at % 6 === 0)
        .toReversed(),
    );
  });

  test.each([
    ["When did Maya visit the support group?", "Maya: I visited the support group yesterday"],
    ["How many people visit the support group?", "Maya: twelve people visit the support group"],
  ])("[SR1] prefers the kind of answer that %j asks for", async (query, answer) => {
    const others = ["The fence is green", "We painted the roof", "The bakery was closed again"];
    const { gateway } = await openNotes(
      "Maya: I visited the support group yesterday",
      ...others,
      "Maya: twelve people visit the support group",
      ...others,
      "Maya: people visit the support group",
    );
    const { hits } = await gateway.call("sessions.search", { query });
    expect(hits[0]?.snippet).toBe(answer);
  });

  test("[SR1] prefers a word with a related meaning, which alone is no hit", async () => {
    const { gateway } = await openNotes("Lena met a goat", "She sold the furniture", "Lena met a plumber");
    const found = async (query: string) =>
      (await gateway.call("sessions.search", { query })).hits.map(({ snippet }) => snippet);
    expect(await found("Lena horse")).toEqual(["Lena met a goat", "Lena met a plumber"]);
    expect(await found("horse")).toEqual([]);
  });

  test("[SR2] understands phrases, excluded words and filters in the query", async () => {
    const { gateway } = await openNotes("the old harbor", "the harbor is old", "an old boat in the harbor");
    const found = async (query: string) =>
      (await gateway.call("sessions.search", { query })).hits.map(({ snippet }) => snippet).toSorted();
    expect(await found('"old harbor"')).toEqual(["the old harbor"]);
    expect(await found("harbor -boats")).toEqual(["the harbor is old", "the old harbor"]);
    expect(await found("boat role:assistant")).toEqual([]);
    expect(await found("boat role:user since:2001-01-01")).toEqual(["an old boat in the harbor"]);
    expect(await found("boat until:2001-01-01")).toEqual([]);
  });

  test("returns the best hit of each session", async () => {
    const { family, gateway } = await openNotes("a harbor", "the harbor of the harbor master");
    const other = await family.make("agent:main:session:other");
    const draft = { type: "message", message: { role: "user", content: "another harbor" } } as const;
    await family.skein.store.sessions.append({}, other.sessionId, [{ draft }]);
    const all = await gateway.call("sessions.search", { query: "harbor" });
    const best = await gateway.call("sessions.search", { query: "harbor", bySession: true });
    expect([all.count, best.count]).toEqual([3, 2]);
    expect(new Set(best.hits.map(({ sessionId }) => sessionId)).size).toBe(2);
    const first = await gateway.call("sessions.search", { query: "harbor", bySession: true, limit: 1 });
    const second = await gateway.call("sessions.search", {
      query: "harbor",
      bySession: true,
      limit: 1,
      cursor: first.nextCursor ?? "",
    });
    expect([...first.hits, ...second.hits]).toEqual(best.hits);
  });
});
