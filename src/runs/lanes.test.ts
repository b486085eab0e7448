import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { InputKind } from "./contract.ts";
import type { Ready } from "./lanes.ts";
import { chooseNext, defaultCaps, laneByKind } from "./lanes.ts";

const none = { main: 0, subagent: 0, cron: 0, nested: 0 };
const ready = (fields: Partial<Ready>): Ready => ({
  uid: "u",
  user: "ann",
  slot: "main",
  seq: 1,
  userTurn: 0,
  sessionTurn: 0,
  ...fields,
});

describe("lanes", () => {
  test.each([
    ["user", "main"],
    ["channel", "main"],
    ["note", "main"],
    ["cron", "cron"],
    ["send", "nested"],
    ["ping_pong", "nested"],
    ["announce", "nested"],
    ["spawn", "subagent"],
  ] as const)("[KIL12] input of kind %s goes into the lane %s", (kind: InputKind, lane) => {
    expect(laneByKind[kind]).toBe(lane);
  });

  test("[KIL12] have their documented caps", () => {
    expect(defaultCaps).toEqual({ main: 4, subagent: 8, cron: 1, nested: 8 });
  });

  test("[KIL12] a full lane does not block another, and silent runs take no slot", () => {
    const all = [ready({ seq: 1 }), ready({ seq: 2, slot: "cron" }), ready({ seq: 3, slot: "none" })];
    expect(chooseNext(all, none, defaultCaps)?.seq).toBe(3);
    expect(chooseNext(all.slice(0, 2), none, defaultCaps)?.seq).toBe(1);
    expect(chooseNext(all.slice(0, 2), { ...none, main: 4 }, defaultCaps)?.seq).toBe(2);
    expect(chooseNext(all.slice(0, 2), { ...none, main: 4, cron: 1 }, defaultCaps)).toBe(null);
  });

  test("the longest wait goes first: users, then sessions, then input", () => {
    const all = [
      ready({ uid: "a", user: "ann", userTurn: 7, sessionTurn: 1, seq: 1 }),
      ready({ uid: "b", user: "bob", userTurn: 5, sessionTurn: 5, seq: 2 }),
      ready({ uid: "c", user: "bob", userTurn: 5, sessionTurn: 4, seq: 9 }),
      ready({ uid: "d", user: "bob", userTurn: 5, sessionTurn: 4, seq: 8 }),
    ];
    expect(chooseNext(all, none, defaultCaps)?.uid).toBe("d");
  });

  test("the choice depends only on the ready runs", () => {
    const arbitrary = fc.record({
      uid: fc.uuid(),
      user: fc.constantFrom("ann", "bob", ""),
      slot: fc.constantFrom("main", "cron", "none"),
      seq: fc.nat(50),
      userTurn: fc.nat(3),
      sessionTurn: fc.nat(3),
    }) as fc.Arbitrary<Ready>;
    fc.assert(
      fc.property(fc.uniqueArray(arbitrary, { selector: ({ seq }) => seq }), fc.nat(5), (all, main) => {
        const taken = { ...none, main };
        const chosen = chooseNext(all, taken, defaultCaps);
        expect(chooseNext(all.toReversed(), taken, defaultCaps)).toEqual(chosen);
        if (chosen?.slot === "main") expect(main).toBeLessThan(4);
      }),
    );
  });
});
