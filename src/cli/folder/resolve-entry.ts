import { SkeinError } from "../../core/errors.ts";
import { entryIdAmong } from "./find-entry.ts";
import type { OpenCalls } from "./with-calls.ts";

const pageSize = 1000;

/** The entry that a person means: its id, or a unique ending of it, which has the session read through. */
export async function resolveEntry(
  open: Pick<OpenCalls, "calls" | "reader">,
  sessionId: string,
  text: string,
): Promise<string> {
  const ids: string[] = [];
  for await (const id of entryIds(open, sessionId)) {
    if (id === text) return id;
    ids.push(id);
  }
  const found = entryIdAmong(ids, text);
  if (found !== null) return found;
  const advice = "Take an id that `sessions tree` or `sessions show` prints, or a unique ending of it";
  throw new SkeinError("not_found", { what: "Entry", name: text, advice });
}

/** Of every branch, a page at a time, the last first. */
async function* entryIds(
  { calls, reader }: Pick<OpenCalls, "calls" | "reader">,
  sessionId: string,
): AsyncGenerator<string> {
  for (let before: string | undefined; ; ) {
    const bounds = before === undefined ? {} : { before };
    const range = { key: sessionId, along: "all", limit: pageSize, ...bounds, ...reader } as const;
    const { entries, hasEarlier } = await calls.call("sessions.entries", range);
    for (const { id } of entries) yield id;
    before = entries[0]?.id;
    if (!hasEarlier || before === undefined) return;
  }
}
