import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SkeinError } from "../core/errors.ts";
import { formatKey, parseKey } from "../core/keys.ts";
import { sessionIdProblem } from "../core/names.ts";
import { planOpenclawFolder } from "./openclaw-folder.ts";

const plan = (rows: Record<string, unknown>) => planOpenclawFolder(JSON.stringify(rows));
const row = (sessionId: string, more: object = {}) => ({ sessionId, updatedAt: 1_770_000_000_000, ...more });
const keyOf = (sourceKey: string, more: object = {}) =>
  plan({ [sourceKey]: row("s1", more) }).sessions[0]?.key;

describe("keys", () => {
  test.each([
    ["agent:main:main", "agent:main:main"],
    ["main", "agent:main:main"],
    ["global", "global"],
    ["unknown", "unknown"],
    ["agent:Research:main", "agent:research:main"],
    ["agent:main:discord:group:123", "agent:main:discord:group:123"],
    ["agent:main:slack:channel:c1:thread:17.5", "agent:main:slack:channel:c1:thread:17.5"],
    ["agent:main:telegram:group:-100:topic:7", "agent:main:telegram:group:-100:thread:7"],
    ["agent:main:matrix:group:!room:example.org", "agent:main:matrix:group:!room%3Aexample.org"],
    ["agent:main:direct:ann", "agent:main:user:ann"],
    ["agent:main:telegram:direct:42", "agent:main:telegram:user:42"],
    ["agent:main:telegram:dm:42", "agent:main:telegram:user:42"],
    ["agent:main:whatsapp:work:direct:+49", "agent:main:whatsapp:work:user:+49"],
    ["agent:main:matrix:direct:@ann:example.org", "agent:main:matrix:user:@ann%3Aexample.org"],
    ["agent:main:web:direct:100%", "agent:main:web:user:100%25"],
    ["agent:main:cron:daily", "agent:main:cron:daily"],
    ["agent:main:cron:daily:run:r1", "agent:main:cron:daily:run:r1"],
    ["agent:main:hook:h1", "agent:main:hook:h1"],
    ["agent:main:node-phone", "agent:main:node:phone"],
    ["hook:h1", "agent:main:hook:h1"],
    ["agent:codex:acp:x1", "agent:codex:acp:x1"],
    ["agent:main:dashboard:d1", "agent:main:dashboard:d1"],
    ["agent::main:main", "agent:main:main"],
  ])("%s is %s", (source, expected) => {
    const [session] = plan({ [source]: row("s1") }).sessions;
    expect(session?.key).toBe(expected);
    expect(session?.keyNote).toBe(source === expected ? null : `Imported as ${expected}.`);
    expect(formatKey(parseKey(expected))).toBe(expected);
  });

  test("an old group gets its channel from the row", () => {
    expect(keyOf("group:g1", { channel: "signal" })).toBe("agent:main:signal:group:g1");
    expect(keyOf("group:g1", { lastChannel: "signal" })).toBe("agent:main:signal:group:g1");
  });

  test.each([
    ["group:g1", "neither the key nor the row names a channel"],
    ["agent:main:subagent:u1", "the session that spawned it is not in the file"],
    ["agent:main", "nothing follows its agent ID"],
    ["agent:no agent:main", "its agent ID is not valid"],
    ["agent:main:bad\u0007id", "segment 3 contains a control character"],
  ])("%j has no counterpart", (source, problem) => {
    const [session] = plan({ [source]: row("s1") }).sessions;
    expect(session?.key).toBe("agent:main:session:s1");
    expect(session?.keyNote).toBe(`Imported as agent:main:session:s1: ${problem}.`);
  });

  test("a sub-agent's key names its parent's session", () => {
    const { sessions } = plan({
      "agent:main:main": row("parent"),
      "agent:worker:subagent:u1": row("child", {
        spawnedBy: "agent:main:main",
        spawnDepth: 1,
        subagentRole: "leaf",
      }),
    });
    expect(sessions[1]).toMatchObject({
      key: "agent:worker:subagent:parent:u1",
      meta: { spawnedBy: "agent:main:main", spawnDepth: 1, role: "leaf" },
    });
  });

  test("two rows with the same key get different keys", () => {
    const { sessions } = plan({ main: row("a"), "agent:main:main": row("b") });
    expect(sessions.map(({ key }) => key)).toEqual(["agent:main:main", "agent:main:session:b"]);
    expect(sessions[1]?.keyNote).toContain("another row has the same key");
  });

  test("the key of a cron run's session is reported, and its children keep their parent", () => {
    const { sessions, refused } = plan({
      "agent:main:cron:daily:run:s1": row("s1"),
      "agent:main:cron:daily": row("s1"),
      "agent:main:subagent:u1": row("s2", { spawnedBy: "agent:main:cron:daily:run:s1" }),
    });
    expect(sessions.map(({ key }) => key)).toEqual(["agent:main:cron:daily", "agent:main:subagent:s1:u1"]);
    expect(sessions[1]?.meta.spawnedBy).toBe("agent:main:cron:daily");
    expect(refused).toEqual([
      {
        sourceKey: "agent:main:cron:daily:run:s1",
        problem: "its session is already imported under agent:main:cron:daily",
      },
    ]);
  });
});

describe("metadata", () => {
  test("known fields are kept, and others are counted", () => {
    const [session] = plan({
      "agent:main:main": row("s1", {
        label: " trip ",
        displayName: "Ann",
        channel: "telegram",
        deliveryContext: { channel: "telegram", to: "42", accountId: "work", threadId: 7 },
        providerOverride: "anthropic",
        modelOverride: "claude-x",
        thinkingLevel: "high",
        verboseLevel: "full",
        sendPolicy: "deny",
        skillsSnapshot: { big: true },
        totalTokens: 5,
      }),
    }).sessions;
    expect(session?.meta).toEqual({
      label: "trip",
      displayName: "Ann",
      channel: "telegram",
      delivery: { channel: "telegram", to: "42", accountId: "work", threadId: "7" },
      model: "anthropic/claude-x",
      thinkingLevel: "high",
      verboseLevel: "full",
      sendPolicy: "deny",
    });
    expect(session?.updatedAt).toBe(1_770_000_000_000);
    expect(session?.notKept).toEqual([
      {
        what: "Fields that session metadata cannot represent were left out.",
        count: 2,
        example: "skillsSnapshot, totalTokens",
      },
    ]);
  });

  test("older rows have the delivery target in separate fields", () => {
    const [session] = plan({
      main: row("s1", { lastChannel: "signal", lastTo: "+49", subject: "Family" }),
    }).sessions;
    expect(session?.meta).toEqual({
      displayName: "Family",
      channel: "signal",
      delivery: { channel: "signal", to: "+49" },
    });
  });

  test("unusable values are left out, and a label is assigned once", () => {
    const { sessions } = plan({
      a: row("s1", { label: "x".repeat(600), sendPolicy: "maybe", verboseLevel: 7, spawnedBy: "nobody" }),
      b: row("s2", { label: "same" }),
      c: row("s3", { label: "same" }),
      "agent:other:d": row("s4", { label: "same" }),
    });
    expect(sessions.map(({ meta }) => meta)).toEqual([{}, { label: "same" }, {}, { label: "same" }]);
    expect(sessions[0]?.notKept).toEqual([
      {
        what: "Fields with invalid values were left out.",
        count: 3,
        example: "label, verboseLevel, sendPolicy",
      },
      { what: "The session that spawned this one is not in the file.", count: 1, example: "nobody" },
    ]);
    expect(sessions[2]?.notKept[0]?.what).toBe("A label that another session already uses was left out.");
  });
});

describe("files", () => {
  test.each([
    [undefined, "s1.jsonl"],
    [null, "s1.jsonl"],
    ["other.jsonl", "other.jsonl"],
    ["/home/ann/.openclaw/agents/main/sessions/s1-topic-a%20b.jsonl", "s1-topic-a%20b.jsonl"],
    ["C:\\Users\\ann\\sessions\\s1.jsonl", "s1.jsonl"],
    ["2026-01-02T03-04-05-678Z_s1.jsonl", "2026-01-02T03-04-05-678Z_s1.jsonl"],
  ])("%j is read from %s", (sessionFile, expected) => {
    expect(plan({ main: row("s1", { sessionFile }) }).sessions[0]?.file).toBe(expected);
  });

  test.each([
    "../../etc/passwd.jsonl",
    "/home/../etc/x.jsonl",
    "sub/x.jsonl",
    "sub\\x.jsonl",
    "/etc/passwd",
    ".hidden.jsonl",
    "x.jsonl\u0000.txt",
    "",
    "/",
    7,
    { toString: "x" },
    "x".repeat(5000),
  ])("%j is not read", (sessionFile) => {
    const { sessions, refused } = plan({ main: row("s1", { sessionFile }), "agent:main:other": row("s2") });
    expect(sessions.map(({ sessionId }) => sessionId)).toEqual(["s2"]);
    expect(refused).toEqual([{ sourceKey: "main", problem: "its file is not in the folder" }]);
  });
});

describe("invalid lists", () => {
  test("an invalid row is skipped alone", () => {
    const text =
      '{"__proto__":{"sessionId":"p"},"constructor":{"sessionId":"c"},"prototype":{"sessionId":"q"},"  ":{"sessionId":"e"},' +
      '"list":[],"nothing":null,"none":{},"odd":{"sessionId":"../x"},"taken":{"sessionId":"main"},"good":{"sessionId":"s1"}}';
    const { sessions, refused } = planOpenclawFolder(text);
    expect(sessions.map(({ key }) => key)).toEqual(["agent:main:good"]);
    expect(refused.map(({ sourceKey }) => sourceKey)).toEqual([
      "__proto__",
      "constructor",
      "prototype",
      "  ",
      "list",
      "nothing",
      "none",
      "odd",
      "taken",
    ]);
    expect(Object.getPrototypeOf(sessions[0]?.meta)).toBe(Object.prototype);
  });

  test("refuses a huge key", () => {
    const { sessions, refused } = plan({ ["k".repeat(5000)]: row("s1"), main: row("s2") });
    expect(sessions).toHaveLength(1);
    expect(refused[0]?.sourceKey).toHaveLength(200);
  });

  test.each(["", "not json", "[]", "7", "null"])("refuses %j as a whole", (text) => {
    expect(() => planOpenclawFolder(text)).toThrow(SkeinError);
    expect(() => planOpenclawFolder(text)).toThrow(
      /sessions\.json cannot be read: it is not a JSON object\./,
    );
  });
});

test("for any rows, every key is valid and unique", () => {
  const word = fc.oneof(
    fc.constantFrom(
      "agent",
      "main",
      "cron",
      "run",
      "subagent",
      "direct",
      "group",
      "thread",
      "topic",
      "acp",
      "node",
      "user",
    ),
    fc.string({ maxLength: 5 }),
  );
  const key = fc.array(word, { minLength: 1, maxLength: 7 }).map((words) => words.join(":"));
  const value = fc.record(
    {
      sessionId: fc.constantFrom("a", "B", "b", "c", "d", "e", "../x"),
      channel: word,
      spawnedBy: key,
      label: word,
    },
    { requiredKeys: ["sessionId"] },
  );
  fc.assert(
    fc.property(fc.dictionary(key, value, { noNullPrototype: true }), (rows) => {
      const { sessions, refused } = plan(rows);
      expect(sessions.length + refused.length).toBe(Object.keys(JSON.parse(JSON.stringify(rows))).length);
      for (const session of sessions) {
        expect(formatKey(parseKey(session.key))).toBe(session.key);
        expect(sessionIdProblem(session.sessionId)).toBeNull();
      }
      expect(new Set(sessions.map((session) => session.key)).size).toBe(sessions.length);
      expect(new Set(sessions.map(({ sessionId }) => sessionId.toLowerCase())).size).toBe(sessions.length);
    }),
  );
});
