import { expect, test } from "vitest";
import type { Entry } from "../core/entries.ts";
import type { UserMessage } from "../core/messages.ts";
import { addToDigest, emptyDigest } from "./digest.ts";

function said(second: number, provenance?: string): Entry {
  const message: UserMessage = { role: "user", content: "x" };
  const timestamp = new Date(second * 1000).toISOString();
  const from = provenance === undefined ? {} : { provenance: { kind: provenance } };
  return {
    type: "message",
    id: `e${second}`,
    parentId: null,
    timestamp,
    message: { ...message, ...from } as UserMessage,
  };
}
const name: Entry = { type: "session_info", id: "i", parentId: null, timestamp: "x", name: "n" };

test.each([
  ["an empty session", [], null],
  ["no input from people", [name, said(4, "internal_system"), said(5, "inter_session")], null],
  ["from a person, without provenance", [said(3), name], 3000],
  ["from a person, by provenance", [said(2, "external_user"), said(5, "inter_session")], 2000],
  ["of an unknown kind", [said(5, "scheduled")], null],
  ["the newest counts", [said(3), said(9)], 9000],
  ["one without a time is ignored", [said(3), { ...said(9), timestamp: "no time" }], 3000],
])("[RST4] the last input: %s", (_, entries, expected) => {
  const digest = entries.reduce((before, entry) => addToDigest(before, entry, 0), emptyDigest);
  expect(digest.lastInputAt).toBe(expected);
});
