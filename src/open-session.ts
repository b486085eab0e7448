import type { LoneSession, OpenSessionOptions } from "./store/files/lone-session.ts";

/**
 * Opens one session file, whoever wrote it, without a store around it.
 *
 * @example
 * ```ts
 * import { openSession } from "skein";
 * const session = await openSession("trip.jsonl");
 * for (const entry of session.tree.path()) console.log(entry.type, entry.id);
 * ```
 */
export async function openSession(file: string, options: OpenSessionOptions = {}): Promise<LoneSession> {
  const { LoneSession: Lone } = await import("./store/files/lone-session.ts");
  return Lone.open(file, options);
}
