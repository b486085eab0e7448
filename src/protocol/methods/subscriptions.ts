import Type from "typebox";
import { eventPatterns } from "../events.ts";
import { closed, count, few, id, reader, reference } from "../fields.ts";
import { method } from "./method.ts";

/** What events may be asked for by, here and at `/events`. */
export const eventFilter = {
  /** Of these sessions alone; left out: of all that the token sees. */
  keys: Type.Optional(few(reference, 100)),
  /** Of these kinds alone. */
  events: Type.Optional(few(Type.Enum([...eventPatterns]), 64)),
  ...reader,
};

/** `after`: those that came behind this one are sent first; where some are no longer kept, a `gap` before them. */
export const sessionsSubscribe = method({
  scope: "read",
  about: "Has events sent over this socket from now on, or from where it was cut off.",
  params: Type.Object({ ...eventFilter, after: Type.Optional(count) }, closed),
  result: Type.Object(
    {
      subscriptionId: Type.String(),
      /** The last event before it. */
      seq: count,
      /** As they are now, where sessions were named. */
      keys: Type.Optional(Type.Array(Type.String())),
    },
    closed,
  ),
  isSocketOnly: true,
});

export const sessionsUnsubscribe = method({
  scope: "read",
  about: "Ends a subscription of this socket.",
  params: Type.Object({ subscriptionId: id }, closed),
  result: Type.Object({ subscriptionId: Type.String(), wasOpen: Type.Boolean() }, closed),
  isIdempotent: true,
  isSocketOnly: true,
});
