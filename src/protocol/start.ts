import * as s from "../core/schema.ts";

/** `start`: the gateway of the folder, whether this start opened it or an earlier one. */
export const StartSchema = s.closed({
  url: s.string(),
  /** For a page: good once, and for ten minutes. */
  link: s.string(),
  pid: s.integer(),
  /** In milliseconds since 1970. */
  startedAt: s.integer(),
  /** It ran before. */
  wasRunning: s.boolean(),
});
export type StartPayload = s.Static<typeof StartSchema>;
