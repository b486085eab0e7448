import { describe, expect, test } from "vitest";
import { errorCatalogue, SkeinError } from "./errors.ts";

describe("errors", () => {
  test("[ERR1] an error has code, status, and a message that ends in what to do", () => {
    const error = new SkeinError("not_found", { what: "File", name: "x.jsonl", advice: "Check the path" });
    expect(error).toMatchObject({ code: "not_found", status: 404, remedy: "Check the path." });
    expect(error.message).toBe('File not found: "x.jsonl". Check the path.');
    expect(error.details).toEqual({ what: "File", name: "x.jsonl", advice: "Check the path" });
  });

  test.each(Object.entries(errorCatalogue))(
    "[ERR1] %s is whole sentences with a sensible status",
    (_, row) => {
      expect(row.text).toMatch(/\.$/);
      expect(row.remedy).toMatch(/\.$/);
      expect(row.status).toBeGreaterThanOrEqual(400);
    },
  );

  test("[ERR3] hostile text stays one short line", () => {
    const name = `\u001b[2J\nerase\u202e${"x".repeat(10_000)}\ud800`;
    const { message } = new SkeinError("not_found", { what: "File", name, advice: "Check" });
    expect(message).not.toMatch(/\p{Cc}|\u202e/u);
    expect(message.length).toBeLessThan(500);
    expect(message.isWellFormed()).toBe(true);
  });
});
