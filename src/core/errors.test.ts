import { describe, expect, test } from "vitest";
import { errorCatalogue, messageWithoutPaths, SkeinError } from "./errors.ts";

describe("errors", () => {
  test("[ERR1] an error has a code, a status, and a message that ends with a remedy", () => {
    const error = new SkeinError("not_found", { what: "File", name: "x.jsonl", advice: "Check the path" });
    expect(error).toMatchObject({ code: "not_found", status: 404, remedy: "Check the path." });
    expect(error.message).toBe('File not found: "x.jsonl". Check the path.');
    expect(error.details).toEqual({ what: "File", name: "x.jsonl", advice: "Check the path" });
  });

  test.each(Object.entries(errorCatalogue))(
    "[ERR1] %s consists of whole sentences and has a sensible status",
    (_, row) => {
      expect(row.text).toMatch(/\.$/);
      expect(row.remedy).toMatch(/\.$/);
      expect(row.status).toBeGreaterThanOrEqual(400);
    },
  );

  test("[ATK18] hostile text stays one short line", () => {
    const name = `\u001b[2J\nerase\u202e${"x".repeat(10_000)}\ud800`;
    const { message } = new SkeinError("not_found", { what: "File", name, advice: "Check" });
    expect(message).not.toMatch(/\p{Cc}|\u202e/u);
    expect(message.length).toBeLessThan(500);
    expect(message.isWellFormed()).toBe(true);
  });
});

describe("errors for readers who must not see file paths", () => {
  test.each([
    ["ENOENT: no such file, open '/srv/my data/a.txt'", "ENOENT: no such file, open '…/a.txt'"],
    ["in /srv/skein/work.db, or C:\\Users\\ann\\a.txt", "in …/work.db, or …/a.txt"],
    ["file:///srv/skein/x.js:3:1 broke", "…/x.js:3:1 broke"],
    ["see https://example.com/a/b and/or openai/gpt-5", "see https://example.com/a/b and/or openai/gpt-5"],
    ["the folder /", "the folder /"],
  ])("[FBD10] %s", (text, expected) => {
    expect(messageWithoutPaths(new Error(text))).toBe(expected);
  });

  test("[FBD10] a catalogued error names a file without its folder", () => {
    const error = new SkeinError("locked", {
      file: "/srv/skein/agents/main/sessions/s.jsonl",
      holder: "pid 5",
    });
    expect(messageWithoutPaths(error)).toMatch(/^…\/s\.jsonl is held by pid 5\./);
    const other = new SkeinError("invalid_arguments", { problem: "POST /v1/chat failed", advice: "Wait" });
    expect(messageWithoutPaths(other)).toBe(other.message);
  });
});
