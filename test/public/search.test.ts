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
    ["old harbor", "an old harbor, harbors", ["old", "harbor"]],
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
});
