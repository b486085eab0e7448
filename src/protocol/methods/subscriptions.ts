import * as s from "../../core/schema.ts";
import { eventPatterns } from "../events.ts";
import { count, few, id, reader, reference } from "../fields.ts";
import { method } from "./method.ts";

/** What events may be asked for by, here and at `/events`. */
export const eventFilter = {
  /** Of these sessions alone; left out: of all that the token sees. */
  keys: s.optional(few(reference, 100)),
  /** Of these kinds alone. */
  events: s.optional(few(s.choice([...eventPatterns]), 64)),
  ...reader,
};

/** `after`: those that came behind this one are sent first; where some are no longer kept, a `gap` before them. */
export const sessionsSubscribe = method({
  scope: "read",
  about: "Has events sent over this socket from now on, or from where it was cut off.",
  params: s.closed({ ...eventFilter, after: s.optional(count) }),
  result: s.closed({
    subscriptionId: s.string(),
    /** The last event before it. */
    seq: count,
    /** As they are now, where sessions were named. */
    keys: s.optional(s.array(s.string())),
  }),
  isSocketOnly: true,
});

export const sessionsUnsubscribe = method({
  scope: "read",
  about: "Ends a subscription of this socket.",
  params: s.closed({ subscriptionId: id }),
  result: s.closed({ subscriptionId: s.string(), wasOpen: s.boolean() }),
  isIdempotent: true,
  isSocketOnly: true,
});
