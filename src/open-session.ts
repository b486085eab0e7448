import type { LoneSession, OpenSessionOptions, SessionFile } from "./store/files/lone-session.ts";

/**
 * Opens a single session file, written by any program, without a store.
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

/**
 * Lists the session files in a folder by their headers, most recently written first. Other files are skipped.
 *
 * @example
 * ```ts
 * import { listSessionFiles } from "skein";
 * for (const { path, header } of await listSessionFiles("sessions")) console.log(header.id, path);
 * ```
 */
export async function listSessionFiles(folder: string): Promise<readonly SessionFile[]> {
  const { listFiles } = await import("./store/files/lone-session.ts");
  return listFiles(folder);
}

/**
 * Opens the most recently written session file in a folder, or creates one if there is none.
 *
 * @example
 * ```ts
 * import { continueRecent } from "skein";
 * const session = await continueRecent("sessions", { cwd: process.cwd() });
 * ```
 */
export async function continueRecent(
  folder: string,
  create: NonNullable<OpenSessionOptions["create"]>,
): Promise<LoneSession> {
  const { continueRecentFile } = await import("./store/files/lone-session.ts");
  return continueRecentFile(folder, create);
}
