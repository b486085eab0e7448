import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { userIdOfSegment, userSegment } from "./path-segment.ts";
import { isReservedUserId } from "./space.ts";

const userId = fc
  .oneof(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }),
    fc.string({ unit: "binary", minLength: 1, maxLength: 40 }).filter((each) => each.isWellFormed()),
    fc.constantFrom("con", "NUL.txt", ".", "..", ".hidden", "dot.", "~x", "%41", "a/b", "a\\b", "A", "a"),
  )
  .filter((each) => !isReservedUserId(each));

describe("user IDs as folder names", () => {
  test("an ID can be restored from its folder name, which is plain lower-case ASCII", () => {
    fc.assert(
      fc.property(userId, (id) => {
        const segment = userSegment(id);
        expect(segment).toMatch(/^[a-z0-9._%~-]{1,200}$/);
        const back = userIdOfSegment(segment);
        if (segment.startsWith("~")) expect(back).toBeNull();
        else expect(back).toBe(id);
      }),
    );
  });

  test("[WKD3] two IDs never share a folder, even on a case-insensitive disk", () => {
    fc.assert(
      fc.property(fc.uniqueArray(userId, { maxLength: 60 }), (ids) => {
        const segments = new Set(ids.map((id) => userSegment(id).toLowerCase()));
        expect(segments.size).toBe(ids.length);
      }),
    );
  });

  test.each([
    ["alice", "alice"],
    ["Ann@example.org", "%41nn%40example.org"],
    ["李雷", "%e6%9d%8e%e9%9b%b7"],
  ])("%s is stored in %s", (id, segment) => {
    expect(userSegment(id)).toBe(segment);
  });

  test("an ID that is too long for a name is stored under its hash", () => {
    expect(userSegment("a".repeat(200))).toBe("a".repeat(200));
    expect(userSegment("a".repeat(201))).toBe(
      `~${createHash("sha256").update("a".repeat(201)).digest("hex")}`,
    );
    expect(userSegment("a".repeat(201))).not.toBe(userSegment("a".repeat(202)));
  });

  test.each(["", "a".repeat(257), "\ud800", "\u0001", "\u0001\u0000"])("%j is not a user ID", (id) => {
    expect(() => userSegment(id)).toThrow(expect.objectContaining({ code: "invalid_user_id" }));
  });

  test("256 characters are counted as code points", () => {
    expect(() => userSegment("😀".repeat(256))).not.toThrow();
  });

  test.each(["", "A", "%41%", "%61", "%C3", "%ff", "a/b", "..", ".a", "~abc", "con", "a b"])(
    "%j is not a folder of a user",
    (segment) => {
      expect(() => userIdOfSegment(segment)).toThrow(
        expect.objectContaining({ code: "invalid_path_segment" }),
      );
    },
  );

  test.each([".", "..", ".hidden", "dot.", "con", "nul", "aux.txt", "com1"])(
    "[KEY8] %s gets a harmless name",
    (id) => {
      const segment = userSegment(id);
      expect(segment).not.toMatch(/^\.|\.$|^(con|nul|aux|com1)(\.|$)/);
      expect(userIdOfSegment(segment)).toBe(id);
    },
  );
});
