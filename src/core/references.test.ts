import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyKey } from "../../test/support/keys.ts";
import { formatKey, parseKey } from "./keys.ts";
import type { Asker, Lookup } from "./references.ts";
import { displayKey, referenceLookups, resolveReference } from "./references.ts";

interface Row {
  key: string;
  sessionId: string;
  uid?: string;
  label?: string;
}

/** A directory as a store would keep it: every lookup answered from the rows. */
function directory(rows: readonly Row[]) {
  return (lookup: Lookup): Row[] => rows.filter((row) => matches(row, lookup));
}

function matches(row: Row, lookup: Lookup): boolean {
  const key = parseKey(row.key);
  switch (lookup.by) {
    case "key":
      return row.key === lookup.key;
    case "spawnId":
      return key.form === "subagent" && key.thread === undefined && key.spawnId === lookup.spawnId;
    case "sessionId":
      return row.sessionId.toLowerCase() === lookup.sessionId.toLowerCase();
    case "uid":
      return row.uid === lookup.uid;
    case "label":
      return row.label === lookup.label && key.form !== "special" && key.agentId === lookup.agentId;
    case "prefix":
      return row.sessionId.startsWith(lookup.prefix);
  }
}

const rows: Row[] = [
  { key: "agent:main:main", sessionId: "s-main" },
  { key: "agent:other:main", sessionId: "s-other" },
  { key: "agent:main:session:trip", sessionId: "trip", label: "holiday" },
  { key: "agent:main:slack:group:G1", sessionId: "s-group", label: "s-main" },
  { key: "agent:main:cron:daily", sessionId: "s-cron" },
  { key: "agent:other:subagent:s-main:sp1", sessionId: "s-sub" },
  { key: "agent:other:session:work", sessionId: "work", label: "holiday" },
  { key: "unknown", sessionId: "s-unknown" },
  { key: "global", sessionId: "s-global" },
];
const asker: Asker = { agentId: "main", key: "agent:main:cron:daily" };

async function resolved(text: string, who: Asker = asker, options = {}): Promise<string | null> {
  return (await resolveReference(text, who, directory(rows), options))?.key ?? null;
}

describe("references", () => {
  test("[REF1] every key is found again by its display form, for every asker", async () => {
    const agentId = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,6}$/);
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.oneof(anyKey.map(formatKey), fc.constant("global")), {
          minLength: 1,
          maxLength: 8,
        }),
        fc.option(agentId, { nil: undefined }),
        fc.constantFrom<"per-sender" | "global">("per-sender", "global"),
        async (keys, stranger, scope) => {
          // Spawn ids are unique in a store.
          const spawnIds = keys
            .map((key) => parseKey(key))
            .flatMap((key) => (key.form === "subagent" ? key.spawnId : []));
          fc.pre(new Set(spawnIds).size === spawnIds.length);
          const sessions = keys.map((key, index) => ({
            key,
            sessionId: `s${index}`,
            label: keys[index - 1] ?? "main",
          }));
          const first = parseKey(keys[0] ?? "");
          const who: Asker = {
            agentId: stranger ?? (first.form === "special" ? "main" : first.agentId),
            scope,
          };
          for (const key of keys) {
            const found = await resolveReference(displayKey(key, who), who, directory(sessions));
            expect(found?.key).toBe(key);
          }
        },
      ),
    );
  });

  test.each([
    ["agent:main:main", "main"],
    ["agent:other:main", "agent:other:main"],
    ["agent:main:session:trip", "session:trip"],
    ["agent:main:slack:group:G1", "slack:group:G1"],
    ["agent:main:slack:channel:C1:thread:9", "slack:channel:C1:thread:9"],
    ["agent:main:hook:gmail", "hook:gmail"],
    ["agent:other:subagent:s-main:sp1", "subagent:sp1"],
    ["agent:main:slack:user:U1", "agent:main:slack:user:U1"],
    ["agent:main:main:thread:1", "agent:main:main:thread:1"],
    ["agent:main:reset:old", "agent:main:reset:old"],
    ["global", "global"],
  ])("[REF1] %s is shown to agent main as %s", (key, display) => {
    expect(displayKey(key, { agentId: "main" })).toBe(display);
  });

  test("[REF2] the order is key, display key, name, session id, unique id, label, prefix", () => {
    expect(referenceLookups("agent:other:main", asker)).toEqual([{ by: "key", key: "agent:other:main" }]);
    expect(referenceLookups("slack:group:G1", asker, { prefix: true })).toEqual([
      { by: "key", key: "agent:main:slack:group:G1" },
      { by: "label", label: "slack:group:G1", agentId: "main" },
    ]);
    expect(referenceLookups("tri", asker, { prefix: true })).toEqual([
      { by: "key", key: "agent:main:session:tri" },
      { by: "sessionId", sessionId: "tri" },
      { by: "uid", uid: "tri" },
      { by: "label", label: "tri", agentId: "main" },
      { by: "prefix", prefix: "tri" },
    ]);
  });

  test.each([
    ["s-main", "agent:main:main"],
    ["S-MAIN", "agent:main:main"],
    ["holiday", "agent:main:session:trip"],
    ["subagent:sp1", "agent:other:subagent:s-main:sp1"],
    ["agent:Other:main", "agent:other:main"],
    ["session:work", null],
    ["tri", null],
    ["nobody", null],
    ["", null],
  ])("[REF2] %j means %s", async (text, key) => {
    expect(await resolved(text)).toBe(key);
  });

  test("[REF2] a prefix is tried last, and only where asked for", async () => {
    expect(await resolved("tri", asker, { prefix: true })).toBe("agent:main:session:trip");
  });

  test("[REF3] main and current belong to the asker", async () => {
    expect(await resolved("main")).toBe("agent:main:main");
    expect(await resolved("main", { agentId: "other" })).toBe("agent:other:main");
    expect(await resolved("main", { agentId: "main", scope: "global" })).toBe("global");
    expect(await resolved("current")).toBe("agent:main:cron:daily");
    expect(await resolved("current", { agentId: "main" })).toBeNull();
  });

  test("[REF4] several hits of one lookup are ambiguous, with their names", async () => {
    const error = expect.objectContaining({ code: "ambiguous" });
    await expect(resolved("s-", asker, { prefix: true })).rejects.toThrow(error);
    await expect(resolved("s-", asker, { prefix: true })).rejects.toThrow("main, agent:other:main");
    await expect(resolved("s-g", asker, { prefix: true })).rejects.toThrow("slack:group:G1, global");
  });

  test("[REF3] an asker may come in any case", async () => {
    expect(await resolved("main", { agentId: "Main" })).toBe("agent:main:main");
    expect(await resolved("current", { agentId: "main", key: "agent:MAIN:session:trip" })).toBe(
      "agent:main:session:trip",
    );
    expect(displayKey("agent:a:b:group:G", { agentId: "a:b" })).toBe("agent:a:b:group:G");
  });

  test("[REF4] what reads as a key is never a label, and names that are alike are given in full", async () => {
    const labelled = directory([{ key: "agent:main:session:x", sessionId: "x", label: "agent:boss:main" }]);
    expect(await resolveReference("agent:boss:main", asker, labelled)).toBeNull();
    const twins = directory(
      ["p", "q"].map((parent) => ({ key: `agent:main:subagent:${parent}:x`, sessionId: `s${parent}` })),
    );
    await expect(resolveReference("subagent:x", asker, twins)).rejects.toThrow(
      "agent:main:subagent:p:x, agent:main:subagent:q:x",
    );
  });

  test("[REF1] a channel called agent is shown in full, and unknown is never found", async () => {
    expect(displayKey("agent:a:agent:group:g", { agentId: "a" })).toBe("agent:a:agent:group:g");
    expect(await resolved("unknown")).toBeNull();
  });
});
