import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyKey } from "../../test/support/keys.ts";
import type { SkeinError } from "./errors.ts";
import type { ParsedKey } from "./keys.ts";
import { formatKey, kindOf, parseKey } from "./keys.ts";
import { parseAgentId, parseSessionId } from "./names.ts";

const uuid = "0198c0de-0000-7000-8000-000000000001";

const forms: [string, string, ParsedKey][] = [
  ["agent:main:main", "main", { form: "main", agentId: "main" }],
  ["agent:main:session:trip", "other", { form: "named", agentId: "main", sessionId: "trip" }],
  ["agent:a:telegram:user:42", "other", { form: "direct", agentId: "a", channel: "telegram", peer: "42" }],
  ["agent:a:user:ann", "other", { form: "direct", agentId: "a", peer: "ann" }],
  [
    "agent:a:telegram:work:user:42",
    "other",
    { form: "direct", agentId: "a", channel: "telegram", account: "work", peer: "42" },
  ],
  [
    "agent:a:slack:group:G1",
    "group",
    { form: "group", agentId: "a", channel: "slack", chat: "group", groupId: "G1" },
  ],
  [
    "agent:default:slack:channel:C12345678:thread:1234567890.123456",
    "group",
    {
      form: "group",
      agentId: "default",
      channel: "slack",
      chat: "channel",
      groupId: "C12345678",
      thread: "1234567890.123456",
    },
  ],
  ["agent:a:main:thread:7", "main", { form: "main", agentId: "a", thread: "7" }],
  ["agent:a:session:trip:thread:7", "other", { form: "named", agentId: "a", sessionId: "trip", thread: "7" }],
  ["agent:a:cron:daily", "cron", { form: "cron", agentId: "a", job: "daily" }],
  ["agent:a:cron:daily:run:r1", "cron", { form: "cron", agentId: "a", job: "daily", runId: "r1" }],
  ["agent:a:hook:gmail", "hook", { form: "hook", agentId: "a", id: "gmail" }],
  ["agent:a:node:mcp-1", "node", { form: "node", agentId: "a", id: "mcp-1" }],
  [
    `agent:a:subagent:${uuid}:s1`,
    "other",
    { form: "subagent", agentId: "a", parentSessionId: uuid, spawnId: "s1" },
  ],
  ["agent:codex:acp:s1", "other", { form: "acp", agentId: "codex", spawnId: "s1" }],
  [`agent:a:reset:${uuid}`, "other", { form: "reset", agentId: "a", sessionId: uuid }],
  ["agent:a:whatever:x:y:z", "other", { form: "other", agentId: "a", segments: ["whatever", "x", "y", "z"] }],
  [
    "agent:a:matrix:user:@ann%3Ab.org",
    "other",
    { form: "direct", agentId: "a", channel: "matrix", peer: "@ann:b.org" },
  ],
  ["global", "other", { form: "special", name: "global" }],
  ["unknown", "other", { form: "special", name: "unknown" }],
];

describe("keys", () => {
  test.each(forms)("[KEY2] %s is read by its words", (text, _, key) => {
    expect(parseKey(text)).toEqual(key);
    expect(formatKey(key)).toBe(text);
  });

  test.each(forms)("%s is of kind %s", (text, kind) => {
    expect(kindOf(parseKey(text))).toBe(kind);
  });

  test.each([
    ["agent:a:cron:group:g", ["cron", "group", "g"]],
    ["agent:a:main:extra", ["main", "extra"]],
    ["agent:a:subagent:flat", ["subagent", "flat"]],
    ["agent:a:hook:user:x", ["hook", "user", "x"]],
    ["agent:a:thread:t", ["thread", "t"]],
  ])("[KEY2] %s: a reserved word is no channel, the rest is legal", (text, segments) => {
    expect(parseKey(text)).toEqual({ form: "other", agentId: "a", segments });
  });

  test("[KEY2] a sub-agent of a session called thread is no thread", () => {
    expect(parseKey("agent:a:subagent:thread:s1")).toEqual({
      form: "subagent",
      agentId: "a",
      parentSessionId: "thread",
      spawnId: "s1",
    });
  });

  test("[KEY1] a generated key survives writing and reading, both ways", () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const text = formatKey(key);
        expect(parseKey(text)).toEqual(key);
        expect(formatKey(parseKey(text))).toBe(text);
      }),
    );
  });

  test("[KEY4] any text is a key or an invalid_key, and what is read is written back", () => {
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
    ["", 'does not begin with "agent:"'],
    ["main", 'does not begin with "agent:"'],
    ["AGENT:a:main", 'does not begin with "agent:"'],
    ["agent:a", "behind the agent is missing"],
    ["agent::main", "segment 2 is empty"],
    ["agent:a:", "segment 3 is empty"],
    ["agent:a:slack::g", "segment 4 is empty"],
    ["agent:-a:main", "agent id"],
    ["agent:a b:main", "agent id"],
    [`agent:${"a".repeat(65)}:main`, "agent id"],
    ["agent:a:slack:group:100%", 'has a "%"'],
    ["agent:a:slack:group:x%3ay", 'has a "%"'],
    ["agent:a:slack:group:x\ny", "control character"],
    ["agent:a:slack:group:\ud800", "well-formed"],
    ["agent:a:session:../etc", "is not valid"],
    ["agent:a:session:main", "reserved word"],
    ["agent:a:session:x.jsonl", "must not end"],
    [`agent:a:x:${"y".repeat(5000)}`, "longer than"],
  ])("[KEY4] %j is refused with the problem and the form", (text, problem) => {
    expect(() => parseKey(text)).toThrow(expect.objectContaining({ code: "invalid_key" }));
    expect(() => parseKey(text)).toThrow(problem);
    expect(() => parseKey(text)).toThrow("Expected agent:<agentId>:<rest>");
  });

  test("[KEY4] only the case of the agent id is mended", () => {
    expect(formatKey(parseKey("agent:Main:slack:group:GeNeRaL"))).toBe("agent:main:slack:group:GeNeRaL");
  });

  test("[KEY5] percent and colon of outside ids are escaped, case is kept", () => {
    const key = { form: "direct", agentId: "a", channel: "matrix", peer: "@Ann:b.org/100%" } as const;
    expect(formatKey(key)).toBe("agent:a:matrix:user:@Ann%3Ab.org/100%25");
  });

  test.each<[ParsedKey, string]>([
    [{ form: "direct", agentId: "a", channel: "cron", peer: "p" }, "a reserved word as channel"],
    [{ form: "other", agentId: "a", segments: ["main"] }, "another form's words"],
    [{ form: "other", agentId: "a", segments: ["x", "thread", "t"] }, "a thread without saying so"],
    [{ form: "other", agentId: "a", segments: [] }, "nothing behind the agent"],
    [{ form: "named", agentId: "a", sessionId: "a:b" }, "a session id with a colon"],
    [{ form: "main", agentId: "A B" }, "a bad agent id"],
    [{ form: "main", agentId: "Main" }, "an agent id that is not lowered"],
  ])("[KEY1] %j is refused: %s", (key) => {
    expect(() => formatKey(key)).toThrow(expect.objectContaining({ code: "invalid_key" }));
  });
});

describe("names", () => {
  test.each(["a", "main", "0", "a_b-c", "a".repeat(64), "UPPER"])("[KEY7] %s is an agent id", (id) => {
    expect(parseAgentId(id)).toBe(id.toLowerCase());
  });

  test.each(["", "-a", "_a", "a b", "a:b", "é", "a".repeat(65), "a/b", "a.b", "\u212a"])(
    "[KEY7] %j is refused with the pattern",
    (id) => {
      expect(() => parseAgentId(id)).toThrow("[a-z0-9][a-z0-9_-]{0,63}");
    },
  );

  test.each(["a", "A", "trip-2026_1.2", "0".repeat(128), "mainly", "a.logs"])(
    "[KEY8] %s is a session id",
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
