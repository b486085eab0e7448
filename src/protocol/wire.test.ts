import { expect, test } from "vitest";
import type { EventKind } from "./events.ts";
import { eventNames, eventTable } from "./events.ts";
import { idempotentMethods } from "./idempotent.ts";
import type { Method } from "./method.ts";
import { methodNames, methodTable } from "./method-table.ts";
import { lossyEvents } from "./wire.ts";

test("[CLT10] the client's constants agree with the tables", () => {
  const idempotent = methodNames.filter((name) => (methodTable[name] as Method).isIdempotent === true);
  expect([...idempotentMethods].toSorted()).toEqual(idempotent.toSorted());
  const lossy = eventNames.filter((name) => (eventTable[name] as EventKind).isLossy === true);
  expect(lossyEvents).toEqual(lossy);
});
