import fc from "fast-check";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { describe, expect, test } from "vitest";
import { anyEntry, damagedEntry } from "../../test/support/arbitraries.ts";
import { EntrySchema, HeaderSchema, UnknownEntrySchema } from "./entries.schema.ts";
import { entryProblem, entryTypes, headerProblem } from "./shape.ts";

const schema = Compile(Type.Union([EntrySchema, UnknownEntrySchema]));
const header = Compile(HeaderSchema);

describe("the reader's checks", () => {
  test("[ENT1] accept every generated entry, as the schemas do", () => {
    fc.assert(
      fc.property(anyEntry, (entry) => {
        expect(schema.Check(entry)).toBe(true);
        expect(entryProblem(entry)).toBeNull();
      }),
    );
  });

  test("[ENT1] agree with the schemas on entries with one wrong field", () => {
    let refused = 0;
    fc.assert(
      fc.property(damagedEntry, (entry) => {
        fc.pre(entry.type !== "session");
        const accepted = typeof entry.type === "string" && entryProblem(entry) === null;
        expect(accepted).toBe(schema.Check(entry));
        if (!accepted) refused += 1;
      }),
    );
    expect(refused).toBeGreaterThan(10);
  });

  test("[ENT1] know the same types", () => {
    expect(EntrySchema.anyOf.map((each) => each.properties.type.const)).toEqual(entryTypes);
  });

  test.each([
    [{ type: "session", id: "a" }],
    [{ type: "session", version: 3, id: "a", cwd: "/", skein: { key: "k" } }],
    [{ type: "session", id: "" }],
    [{ type: "session" }],
    [{ type: "session", id: "a", version: "3" }],
    [{ type: "session", id: "a", skein: [] }],
  ])("[ENT1] agree on the header %j", (value) => {
    expect(headerProblem(value) === null).toBe(header.Check(value));
  });

  test.each([
    [{ type: "message", id: "a", parentId: null, timestamp: "t" }, "message must be an object"],
    [
      {
        type: "message",
        id: "a",
        parentId: null,
        timestamp: "t",
        message: { role: "user", content: [{ type: "text" }] },
      },
      "message.content[0].text must be a string",
    ],
    [
      { type: "label", id: "a", parentId: 5, timestamp: "t", targetId: "b" },
      "parentId must be a string or null",
    ],
  ])("[ENT6] name the path of what is wrong: %#", (value, problem) => {
    expect(entryProblem(value)).toBe(problem);
  });
});
