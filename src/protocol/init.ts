import type { Static } from "typebox";
import Type from "typebox";

const strict = { additionalProperties: false };

/** `init`. Of keys there are the names of their variables alone. */
export const InitSchema = Type.Object(
  {
    /** What was written. */
    file: Type.String(),
    /** Where the files that were there before are now. */
    backups: Type.Array(Type.String()),
    /** The model that agent `main` has. */
    model: Type.String(),
    keys: Type.Array(
      Type.Object(
        { provider: Type.String(), variable: Type.String(), from: Type.Enum(["environment", ".env"]) },
        strict,
      ),
    ),
    /** Absent: none answered. */
    ollama: Type.Optional(Type.Object({ baseUrl: Type.String(), models: Type.Array(Type.String()) }, strict)),
    /** What to do next, a sentence each. */
    next: Type.Array(Type.String()),
  },
  strict,
);
export type InitPayload = Static<typeof InitSchema>;
