import * as s from "../core/schema.ts";

/** `init`. Of keys there are the names of their variables alone. */
export const InitSchema = s.closed({
  /** What was written. */
  file: s.string(),
  /** Where the files that were there before are now. */
  backups: s.array(s.string()),
  /** The model that agent `main` has. */
  model: s.string(),
  keys: s.array(
    s.closed({ provider: s.string(), variable: s.string(), from: s.choice(["environment", ".env"]) }),
  ),
  /** Absent: none answered. */
  ollama: s.optional(s.closed({ baseUrl: s.string(), models: s.array(s.string()) })),
  /** What to do next, a sentence each. */
  next: s.array(s.string()),
});
export type InitPayload = s.Static<typeof InitSchema>;
