import type { Static } from "typebox";
import Type from "typebox";

/** `start`: the gateway of the folder, whether this start opened it or an earlier one. */
export const StartSchema = Type.Object(
  {
    url: Type.String(),
    /** For a page: good once, and for ten minutes. */
    link: Type.String(),
    pid: Type.Integer(),
    /** In milliseconds since 1970. */
    startedAt: Type.Integer(),
    /** It ran before. */
    wasRunning: Type.Boolean(),
  },
  { additionalProperties: false },
);
export type StartPayload = Static<typeof StartSchema>;
