import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Asker, Lookup, ParsedKey, SkeinError } from "../../src/index.ts";
import {
  displayKey,
  formatKey,
  parseAgentId,
  parseKey,
  parseSessionId,
  resolveReference,
} from "../../src/index.ts";
import { anyKey } from "../support/keys.ts";

const uuid = "0198c0de-0000-7000-8000-000000000001";

const forms: [string, ParsedKey][] = [
  ["agent:main:main", { form: "main", agentId: "main" }],
  ["agent:main:session:trip", { form: "named", agentId: "main", sessionId: "trip" }],
  ["agent:a:telegram:user:42", { form: "direct", agentId: "a", channel: "telegram", peer: "42" }],
  ["agent:a:user:ann", { form: "direct", agentId: "a", peer: "ann" }],
  [
    "agent:a:telegram:work:user:42",
    { form: "direct", agentId: "a", channel: "telegram", account: "work", peer: "42" },
  ],
  ["agent:a:slack:group:G1", { form: "group", agentId: "a", channel: "slack", chat: "group", groupId: "G1" }],
  [
    "agent:default:slack:channel:C12345678:thread:1234567890.123456",
    {
      form: "group",
      agentId: "default",
      channel: "slack",
      chat: "channel",
      groupId: "C12345678",
      thread: "1234567890.123456",
    },
  ],
  ["agent:a:main:thread:7", { form: "main", agentId: "a", thread: "7" }],
  ["agent:a:session:trip:thread:7", { form: "named", agentId: "a", sessionId: "trip", thread: "7" }],
  ["agent:a:cron:daily", { form: "cron", agentId: "a", job: "daily" }],
  ["agent:a:cron:daily:run:r1", { form: "cron", agentId: "a", job: "daily", runId: "r1" }],
  ["agent:a:hook:gmail", { form: "hook", agentId: "a", id: "gmail" }],
  ["agent:a:node:mcp-1", { form: "node", agentId: "a", id: "mcp-1" }],
  [`agent:a:subagent:${uuid}:s1`, { form: "subagent", agentId: "a", parentSessionId: uuid, spawnId: "s1" }],
  ["agent:codex:acp:s1", { form: "acp", agentId: "codex", spawnId: "s1" }],
  [`agent:a:reset:${uuid}`, { form: "reset", agentId: "a", sessionId: uuid }],
  ["agent:a:whatever:x:y:z", { form: "other", agentId: "a", segments: ["whatever", "x", "y", "z"] }],
  [
    "agent:a:matrix:user:@ann%3Ab.org",
    { form: "direct", agentId: "a", channel: "matrix", peer: "@ann:b.org" },
  ],
  ["global", { form: "special", name: "global" }],
  ["unknown", { form: "special", name: "unknown" }],
];

describe("keys", () => {
  test.each(forms)("[KEY2] %s is parsed by its segments", (text, key) => {
    expect(parseKey(text)).toEqual(key);
    expect(formatKey(key)).toBe(text);
  });

  test.each([
    ["agent:a:cron:group:g", ["cron", "group", "g"]],
    ["agent:a:main:extra", ["main", "extra"]],
    ["agent:a:subagent:flat", ["subagent", "flat"]],
    ["agent:a:hook:user:x", ["hook", "user", "x"]],
    ["agent:a:thread:t", ["thread", "t"]],
  ])("[KEY2] %s: a reserved word is not a channel, and the rest is valid", (text, segments) => {
    expect(parseKey(text)).toEqual({ form: "other", agentId: "a", segments });
  });

  test("[KEY2] a sub-agent of a session named thread is not a thread", () => {
    expect(parseKey("agent:a:subagent:thread:s1")).toEqual({
      form: "subagent",
      agentId: "a",
      parentSessionId: "thread",
      spawnId: "s1",
    });
  });

  test("[KEY1] a generated key survives formatting and parsing, both ways", () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const text = formatKey(key);
        expect(parseKey(text)).toEqual(key);
        expect(formatKey(parseKey(text))).toBe(text);
      }),
    );
  });

  test("[KEY4] any text is a key or an invalid_key, and a parsed key is formatted back", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "agent",
        "main",
        "session",
        "user",
        "group",
        "cron",
        "run",
        "thread",
        "subagent",
        "acp",
        "",
      ),
      fc.string({ maxLength: 6 }),
    );
    const anything = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 8 }).map((pieces) => ["agent", ...pieces].join(":")),
    );
    fc.assert(
      fc.property(anything, (text) => {
        let key: ParsedKey;
        try {
          key = parseKey(text);
        } catch (error) {
          expect((error as SkeinError).code).toBe("invalid_key");
          return;
        }
        expect(formatKey(key)).toBe(text.replace(/^agent:[^:]*/, (agent) => agent.toLowerCase()));
      }),
    );
  });

  test.each([
    ["", 'does not start with "agent:"'],
    ["main", 'does not start with "agent:"'],
    ["AGENT:a:main", 'does not start with "agent:"'],
    ["agent:a", "after the agent is missing"],
    ["agent::main", "segment 2 is empty"],
    ["agent:a:", "segment 3 is empty"],
    ["agent:a:slack::g", "segment 4 is empty"],
    ["agent:-a:main", "agent ID"],
    ["agent:a b:main", "agent ID"],
    [`agent:${"a".repeat(65)}:main`, "agent ID"],
    ["agent:a:slack:group:100%", 'has a "%"'],
    ["agent:a:slack:group:x%3ay", 'has a "%"'],
    ["agent:a:slack:group:x\ny", "control character"],
    ["agent:a:slack:group:\ud800", "well-formed"],
    ["agent:a:session:../etc", "is not valid"],
    ["agent:a:session:main", "reserved word"],
    ["agent:a:session:x.jsonl", "must not end"],
    [`agent:a:x:${"y".repeat(5000)}`, "longer than"],
  ])("[KEY4] %j is refused with the problem and the format", (text, problem) => {
    expect(() => parseKey(text)).toThrow(expect.objectContaining({ code: "invalid_key" }));
    expect(() => parseKey(text)).toThrow(problem);
    expect(() => parseKey(text)).toThrow("Expected agent:<agentId>:<rest>");
  });

  test("[KEY4] only the agent ID is lowercased", () => {
    expect(formatKey(parseKey("agent:Main:slack:group:GeNeRaL"))).toBe("agent:main:slack:group:GeNeRaL");
  });

  test("[KEY5] percent and colon in external IDs are escaped, and case is kept", () => {
    const key = { form: "direct", agentId: "a", channel: "matrix", peer: "@Ann:b.org/100%" } as const;
    expect(formatKey(key)).toBe("agent:a:matrix:user:@Ann%3Ab.org/100%25");
  });

  test.each<[ParsedKey, string]>([
    [{ form: "direct", agentId: "a", channel: "cron", peer: "p" }, "a reserved word as channel"],
    [{ form: "other", agentId: "a", segments: ["main"] }, "words of another key form"],
    [{ form: "other", agentId: "a", segments: ["x", "thread", "t"] }, "an undeclared thread"],
    [{ form: "other", agentId: "a", segments: [] }, "nothing after the agent"],
    [{ form: "named", agentId: "a", sessionId: "a:b" }, "a session ID with a colon"],
    [{ form: "main", agentId: "A B" }, "an invalid agent ID"],
    [{ form: "main", agentId: "Main" }, "an agent ID that is not lowercase"],
  ])("[KEY1] %j is refused: %s", (key) => {
    expect(() => formatKey(key)).toThrow(expect.objectContaining({ code: "invalid_key" }));
  });
});

describe("names", () => {
  test.each(["a", "main", "0", "a_b-c", "a".repeat(64), "UPPER"])("[KEY7] %s is an agent ID", (id) => {
    expect(parseAgentId(id)).toBe(id.toLowerCase());
  });

  test.each(["", "-a", "_a", "a b", "a:b", "é", "a".repeat(65), "a/b", "a.b", "\u212a"])(
    "[KEY7] %j is refused with the pattern",
    (id) => {
      expect(() => parseAgentId(id)).toThrow("[a-z0-9][a-z0-9_-]{0,63}");
    },
  );

  test.each(["a", "A", "trip-2026_1.2", "0".repeat(128), "mainly", "a.logs"])(
    "[KEY8] %s is a session ID",
    (id) => {
      expect(parseSessionId(id)).toBe(id);
    },
  );

  test.each([
    ...["", ".", "..", "../x", "a/b", "-a", ".a", "a b", "é", "0".repeat(129), "a\n"],
    ...["main", "MAIN", "current", "Global", "unknown", "a.log", "a.LOG", "a.jsonl", "a.lock", "a."],
  ])("[KEY8] %j is refused", (id) => {
    expect(() => parseSessionId(id)).toThrow(expect.objectContaining({ code: "invalid_session_id" }));
  });
});

interface Row {
  key: string;
  sessionId: string;
  uid?: string;
  label?: string;
}

/** A directory as a store would provide it. Every lookup is answered from the rows. */
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
  test("[REF1] every key is found by its display form, for every asker", async () => {
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
          // Spawn IDs are unique in a store.
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

  test.each<[string, Lookup[]]>([
    ["agent:other:main", [{ by: "key", key: "agent:other:main" }]],
    [
      "slack:group:G1",
      [
        { by: "key", key: "agent:main:slack:group:G1" },
        { by: "label", label: "slack:group:G1", agentId: "main" },
      ],
    ],
    [
      "tri",
      [
        { by: "key", key: "agent:main:session:tri" },
        { by: "sessionId", sessionId: "tri" },
        { by: "uid", uid: "tri" },
        { by: "label", label: "tri", agentId: "main" },
        { by: "prefix", prefix: "tri" },
      ],
    ],
  ])("[REF2] %s is looked up in this order", async (text, expected) => {
    const lookups: Lookup[] = [];
    const findNothing = (lookup: Lookup): Row[] => {
      lookups.push(lookup);
      return [];
    };
    expect(await resolveReference(text, asker, findNothing, { prefix: true })).toBeNull();
    expect(lookups).toEqual(expected);
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

  test("[REF2] a prefix is tried last, and only on request", async () => {
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

  test("[REF3] an asker may be given in any case", async () => {
    expect(await resolved("main", { agentId: "Main" })).toBe("agent:main:main");
    expect(await resolved("current", { agentId: "main", key: "agent:MAIN:session:trip" })).toBe(
      "agent:main:session:trip",
    );
    expect(displayKey("agent:a:b:group:G", { agentId: "a:b" })).toBe("agent:a:b:group:G");
  });

  test("[REF4] a text that parses as a key is never a label, and similar names are shown in full", async () => {
    const labelled = directory([{ key: "agent:main:session:x", sessionId: "x", label: "agent:boss:main" }]);
    expect(await resolveReference("agent:boss:main", asker, labelled)).toBeNull();
    const twins = directory(
      ["p", "q"].map((parent) => ({ key: `agent:main:subagent:${parent}:x`, sessionId: `s${parent}` })),
    );
    await expect(resolveReference("subagent:x", asker, twins)).rejects.toThrow(
      "agent:main:subagent:p:x, agent:main:subagent:q:x",
    );
  });

  test("[REF1] a channel named agent is shown in full, and unknown is never found", async () => {
    expect(displayKey("agent:a:agent:group:g", { agentId: "a" })).toBe("agent:a:agent:group:g");
    expect(await resolved("unknown")).toBeNull();
  });
});
