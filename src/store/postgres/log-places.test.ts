import fc from "fast-check";
import { expect, test } from "vitest";
import type { Entry } from "../../core/entries.ts";
import { linkEntries } from "../../core/link-entries.ts";
import { parseSession } from "../../core/parse-session.ts";
import { SessionTree } from "../../core/tree.ts";
import { placesInTree } from "./entry-places.ts";
import { LogPlaces } from "./log-places.ts";

const ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
const id = fc.constantFrom(...ids);
const timestamp = "2026-01-01T00:00:00.000Z";

const fields = fc.oneof(
  fc.constant({ type: "message", message: { role: "user", content: "Hello" } }),
  fc.constant({ type: "model_change", provider: "p", modelId: "m" }),
  fc.constant({ type: "thinking_level_change", thinkingLevel: "high" }),
  fc.constant({ type: "custom", customType: "skein.leaf" }),
  id.map((firstKeptEntryId) => ({ type: "compaction", summary: "s", firstKeptEntryId })),
  fc.option(id).map((targetId) => ({ type: "leaf", targetId })),
);

/** Entries in any order, with parents that come later or are missing. */
const lines = fc
  .array(fc.record({ parentId: fc.option(fc.oneof(id, fc.constant("missing"))), fields }), {
    maxLength: ids.length,
  })
  .map((all) => all.map(({ parentId, fields }, at) => ({ id: ids[at], parentId, timestamp, ...fields })));

test("places that are computed one entry at a time are those of the whole tree", () => {
  fc.assert(
    fc.property(lines, (all) => {
      const header = { type: "session", version: 3, id: "s", timestamp, cwd: "/" };
      const session = parseSession([header, ...all].map((line) => JSON.stringify(line)).join("\n"));
      fc.pre(linkEntries(session.lines).diagnostics.every(({ code }) => code !== "cycle_cut"));
      const tree = SessionTree.from(session);
      const { byId, isOdd } = placesInTree(tree);
      const places = new LogPlaces();
      const found = [...tree.entries()].map((entry: Entry) => [entry.id, places.add(entry)] as const);
      // An odd session is read as a whole, without its places.
      if (!isOdd) expect(new Map(found)).toEqual(byId);
      expect([places.tipId, places.leafId]).toEqual([tree.tipId, tree.leafId]);
      expect(places.isOdd).toBe(isOdd);
    }),
    { numRuns: 2000 },
  );
});
