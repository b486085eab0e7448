import { SkeinError } from "../../core/errors.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { codeIn } from "./resolve-ref.ts";
import type { NamedSession } from "./whole-tree.ts";
import { wholeTree } from "./whole-tree.ts";
import type { OpenCalls } from "./with-calls.ts";
import type { Folder } from "./with-folder.ts";

const shortestEnding = 4;
const chunk = 1000;
const mostCandidates = 5;

/** The entry that a text means: the one with this id, or the only one whose id ends so, as the tree prints it. */
export function entryIdAmong(ids: Iterable<string>, text: string): string | null {
  const ending = text.replace(/^…/, "");
  const found: string[] = [];
  for (const id of ids) {
    if (id === text) return id;
    if (ending.length >= shortestEnding && id.endsWith(ending)) found.push(id);
  }
  if (found.length > 1) {
    const candidates = found.slice(0, mostCandidates).join(", ");
    throw new SkeinError("ambiguous", { name: text, what: "entry", candidates });
  }
  return found[0] ?? null;
}

/** The same for a session in a store. A whole id is asked for; only an ending has the session read through. */
export async function findEntryId(folder: Folder, record: SessionRecord, text: string): Promise<string> {
  if ((await folder.store.sessions.entry(folder.scope, record.sessionId, text)) !== null) return text;
  const ids: string[] = [];
  for await (const id of entryIds(folder, record)) ids.push(id);
  return entryIdAmong(ids, text) ?? noSuchEntry(text);
}

/** The same by methods. */
export async function findEntry(
  { calls }: Pick<OpenCalls, "calls">,
  session: NamedSession,
  text: string,
): Promise<string> {
  try {
    await calls.call("sessions.entries", { ...session, along: "all", after: text, limit: 1 });
    return text;
  } catch (error) {
    if (codeIn(error) !== "not_found") throw error;
  }
  const { entries } = await wholeTree({ calls }, session);
  const ids = entries.map(({ id }) => id);
  return entryIdAmong(ids, text) ?? noSuchEntry(text);
}

function noSuchEntry(text: string): never {
  const advice = "Take an id that `sessions tree` or `sessions show` prints, or a unique ending of it";
  throw new SkeinError("not_found", { what: "Entry", name: text, advice });
}

async function* entryIds({ store, scope }: Folder, { sessionId }: SessionRecord): AsyncGenerator<string> {
  let before: string | undefined;
  for (;;) {
    const bounds = before === undefined ? {} : { before };
    const page = await store.sessions.page(scope, sessionId, { along: "all", ...bounds, limit: chunk });
    for (const { id } of page?.entries ?? []) yield id;
    before = page?.entries[0]?.id;
    if (page?.hasEarlier !== true || before === undefined) return;
  }
}
