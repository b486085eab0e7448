import fc from "fast-check";
import { Check } from "typebox/schema";
import { describe, expect, test } from "vitest";
import { anyEntry, damagedEntry } from "../../test/support/arbitraries.ts";
import { entryProblem, entrySchemas, headerProblem } from "./entries.ts";

/** TypeBox's result for the same JSON Schema. */
const fitsForOthers = (entry: Readonly<Record<string, unknown>>) => {
  const schema = entrySchemas.get(String(entry.type));
  return schema === undefined || Check({ ...schema }, entry);
};

describe("the problem with an entry", () => {
  test("is none for every generated entry", () => {
    fc.assert(
      fc.property(anyEntry, (entry) => {
        expect(entryProblem(entry)).toBeNull();
        expect(fitsForOthers(entry)).toBe(true);
      }),
    );
  });

  test("agrees with another JSON Schema validator on entries with one wrong field", () => {
    let refused = 0;
    fc.assert(
      fc.property(damagedEntry, (entry) => {
        fc.pre(typeof entry.type === "string" && entrySchemas.has(entry.type));
        const accepted = entryProblem(entry) === null;
        expect(accepted).toBe(fitsForOthers(entry));
        if (!accepted) refused += 1;
      }),
    );
    expect(refused).toBeGreaterThan(10);
  });

  test.each([
    [{ type: "session", id: "a" }, null],
    [{ type: "session", version: 3, id: "a", cwd: "/", skein: { key: "k" } }, null],
    [{ type: "session", id: "" }, "id must be a string that is not empty"],
    [{ type: "session" }, "id must be a string that is not empty"],
    [{ type: "session", id: "a", version: "3" }, "version must be a number"],
    [{ type: "session", id: "a", skein: [] }, "skein must be an object"],
  ])("of the header %j", (value, problem) => {
    expect(headerProblem(value)).toBe(problem);
  });

  const base = { id: "a", parentId: null, timestamp: "t" };
  test.each([
    [{ ...base, type: "message" }, "message must be an object"],
    [
      { ...base, type: "message", message: { role: "user", content: [{ type: "text" }] } },
      "message.content[0].text must be a string",
    ],
    [{ ...base, type: "message", message: { role: "user", content: 5 } }, "message.content must be an array"],
    [{ ...base, type: "message", message: { role: 5 } }, "message.role must be a string"],
    [
      { ...base, type: "message", message: { role: "user", content: ["text"] } },
      "message.content[0] must be an object",
    ],
    [{ ...base, type: "label", parentId: 5, targetId: "b" }, "parentId must be a string or null"],
    [{ ...base, type: "of later versions", parentId: 5 }, "parentId must be a string or null"],
    [{ ...base, type: "compaction", summary: "s", fromHook: 1 }, "fromHook must be true or false"],
    [{ ...base, type: "context_edit", targetId: "b", replacement: 5 }, "replacement must be an object"],
    [
      {
        ...base,
        type: "context_edit",
        targetId: "b",
        replacement: { content: [{ type: "image", data: "" }] },
      },
      "replacement.content[0].mimeType must be a string",
    ],
    [
      { ...base, type: "active_tools_change", activeToolNames: ["a", 5] },
      "activeToolNames[1] must be a string",
    ],
  ])("[ENT6] names the path: %#", (value, problem) => {
    expect(entryProblem(value)).toBe(problem);
  });
});
