import { expect, test } from "vitest";
import { kindOf, parseKey } from "./keys.ts";

test.each([
  ["agent:main:main", "main"],
  ["agent:a:main:thread:7", "main"],
  ["agent:main:session:trip", "other"],
  ["agent:a:session:trip:thread:7", "other"],
  ["agent:a:telegram:user:42", "other"],
  ["agent:a:user:ann", "other"],
  ["agent:a:telegram:work:user:42", "other"],
  ["agent:a:matrix:user:@ann%3Ab.org", "other"],
  ["agent:a:slack:group:G1", "group"],
  ["agent:default:slack:channel:C12345678:thread:1234567890.123456", "group"],
  ["agent:a:cron:daily", "cron"],
  ["agent:a:cron:daily:run:r1", "cron"],
  ["agent:a:hook:gmail", "hook"],
  ["agent:a:node:mcp-1", "node"],
  ["agent:a:subagent:parent:s1", "other"],
  ["agent:codex:acp:s1", "other"],
  ["agent:a:reset:old", "other"],
  ["agent:a:whatever:x:y:z", "other"],
  ["global", "other"],
  ["unknown", "other"],
])("%s is of kind %s", (text, kind) => {
  expect(kindOf(parseKey(text))).toBe(kind);
});
