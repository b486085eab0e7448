import fc from "fast-check";
import type { Static } from "typebox";
import { Value } from "typebox/value";
import { describe, expect, test } from "vitest";
import { anyOfSchema } from "../../test/support/schemas.ts";
import type { SkeinEvent } from "../core/events.ts";
import type { WireEvent, WireEventType } from "./events.ts";
import { eventNames, eventPayload, eventTable, isWanted } from "./events.ts";

type Keys<T> = T extends unknown ? keyof T : never;
type Wire<T extends WireEventType> = keyof Static<(typeof eventTable)[T]["payload"]>;
type Bus<T extends WireEventType> = Exclude<Keys<Extract<WireEvent, { type: T }>>, "type">;
/** Compiles only if each event has the same fields in the process and on the wire. */
const sameFields: { [T in WireEventType]?: [Wire<T>, Bus<T>] extends [Bus<T>, Wire<T>] ? true : never } =
  Object.fromEntries(eventNames.map((name) => [name, true]));

const reader = (isAdmin: boolean, allUsers = false) => ({
  isAdmin,
  allUsers,
  redact: () => "masked",
  redactDelta: () => ({ delta: "held back", offset: 7 }),
});

describe("events on the wire", () => {
  test.each(eventNames)("%s matches its schema, and is redacted for all but admins", (name) => {
    expect(sameFields[name]).toBe(true);
    const { payload, redacted } = eventTable[name];
    fc.assert(
      fc.property(anyOfSchema(payload), (fields) => {
        const known = { ...(fields as object), ...("userId" in payload.properties && { userId: "ann" }) };
        const event = { ...known, type: name } as unknown as SkeinEvent;
        const shown = eventPayload(event, reader(true, true));
        expect(shown).toEqual(known);
        expect(Value.Check(payload, shown)).toBe(true);
        const others = eventPayload(event, reader(false));
        expect(others.userId).toBeUndefined();
        for (const [field, how] of Object.entries(redacted)) {
          if (shown[field] !== undefined)
            expect(others[field]).toBe(how === "stream" ? "held back" : "masked");
        }
      }),
      { numRuns: 20 },
    );
  });

  test("null on the bus is absent, and an entry is the same as its line", () => {
    const about = { at: 1, userId: null, sessionKey: "agent:main:main", sessionId: "s" };
    const ended = eventPayload(
      { ...about, type: "run.ended", state: "ok", code: null, error: null },
      reader(true, true),
    );
    expect(ended).toEqual({ at: 1, sessionKey: "agent:main:main", sessionId: "s", state: "ok" });
    const original = { type: "odd", id: "e", parentId: null, timestamp: "t", kept: 1 };
    const entry = {
      type: "opaque",
      id: "e",
      parentId: null,
      timestamp: "t",
      original,
      problem: null,
    } as const;
    expect(eventPayload({ ...about, type: "entry.appended", entry }, reader(true)).entry).toEqual(original);
  });

  test("a subscription selects events by name, by kind, or all", () => {
    expect(isWanted("run.delta", undefined)).toBe(true);
    expect(isWanted("run.delta", ["run.*"])).toBe(true);
    expect(isWanted("run.delta", ["run.ended", "entry.*"])).toBe(false);
  });
});
