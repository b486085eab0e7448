import { SkeinError } from "../../core/errors.ts";
import { readKey } from "../../core/keys.ts";
import { sessionIdProblem } from "../../core/names.ts";
import { keyOfReference, referenceLookups } from "../../core/references.ts";
import type { Result } from "../../protocol/method-table.ts";
import type { SessionRow, TrashRow } from "../../protocol/session-list.ts";
import type { TreePayload } from "../../protocol/session-views.ts";
import type { TrashedName } from "../../sessions/find-session.ts";
import { findTrashed, resolveSession, trashedAs } from "../../sessions/find-session.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { commandLine } from "../output/invocation.ts";
import type { CallerContext, OpenCalls } from "./with-calls.ts";
import type { Folder } from "./with-folder.ts";

type Resolved = Pick<Result<"sessions.resolve">, "key" | "sessionId">;

/**
 * Resolves a reference, or throws an error that states where the command looked. If none of the agent's sessions has
 * the label, also looks among their child sessions of other agents, such as ACP agents.
 */
export async function resolveRef(
  open: OpenCalls,
  name: string,
  { canBegin = false }: { readonly canBegin?: boolean } = {},
): Promise<Resolved> {
  const { calls, reader } = open;
  try {
    return await calls.call("sessions.resolve", { key: name, prefix: true, ...reader });
  } catch (error) {
    if (errorCodeOf(error) !== "not_found") throw error;
    const labelled = await findLabelElsewhere(open, name);
    const children = labelled.filter(({ spawnedBy = "" }) => agentOf(spawnedBy) === open.asker.agentId);
    if (children.length > 1) throw ambiguousLabel(name, children);
    if (children[0] !== undefined) return { key: children[0].key, sessionId: children[0].sessionId };
    const { sessions } = await calls.call("sessions.trash", reader);
    throw sessionNotFound(open, name, sessions, { elsewhere: agentOf(labelled[0]?.key ?? ""), canBegin });
  }
}

/** Returns a key that names exactly this session. After a reset, the ID alone could name the new session. */
export function exactKey({ key, sessionId }: Resolved): string {
  return key === "unknown" ? sessionId : key;
}

/** Like `exactKey`, but for the trash, where several sessions can have the same key. */
export function exactTrashedKey({ key, sessionId }: Resolved): string {
  const parsed = readKey(key);
  return "form" in parsed && parsed.form === "reset" ? key : sessionId;
}

/** Returns every agent's sessions with this label. Returns none if `--agent` is set or the name cannot be a label. */
async function findLabelElsewhere({ calls, reader, asker }: OpenCalls, name: string): Promise<SessionRow[]> {
  const isLabel = referenceLookups(name, asker).some(({ by }) => by === "label");
  if (!isLabel || reader.agentId !== undefined) return [];
  const pages = await Promise.all(
    [false, true].map((archived) => calls.call("sessions.list", { label: name, archived, ...reader })),
  );
  return pages.flatMap(({ sessions }) => sessions);
}

function ambiguousLabel(name: string, found: readonly SessionRow[]): SkeinError<"ambiguous"> {
  const candidates = found.map(({ key }) => key).join(", ");
  return new SkeinError("ambiguous", { name, what: "session", candidates });
}

function agentOf(key: string): string | null {
  const parsed = readKey(key);
  return "agentId" in parsed ? parsed.agentId : null;
}

/** Returns the code of an error from this process or from a gateway. */
export function errorCodeOf(error: unknown): string | null {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : null;
}

/** Where a command looked for a session, and on whose behalf. */
type LookupContext = Pick<CallerContext, "terminal" | "options" | "asker" | "reader" | "userId" | "place">;

interface Hints {
  /** The agent whose session has this label. */
  readonly elsewhere?: string | null;
  /** Whether a message to the key would create the session. */
  readonly canBegin?: boolean;
}

/**
 * Builds an error that states where the command looked, and how to reach a session that is in the trash or belongs to
 * another agent.
 */
function sessionNotFound(
  looked: LookupContext,
  name: string,
  trashed: readonly TrashedName[],
  { elsewhere = null, canBegin = false }: Hints = {},
): SkeinError<"not_found"> {
  const isTrashed = trashedAs(trashed, name, looked.asker).length > 0;
  const begin =
    canBegin && sessionIdProblem(name) === null ? `use session:${name} to create a new session, or ` : "";
  const advice = isTrashed
    ? `It is in the trash. To restore it: ${commandLine(looked, "sessions", "restore", name)}`
    : `Searched ${describePlace(looked)}; ${
        elsewhere === null
          ? `${begin}see ${commandLine(looked, "sessions", "ls")}`
          : `a session of agent ${elsewhere} has this label; add --agent ${elsewhere} to use it`
      }`;
  return new SkeinError("not_found", { what: "Session", name, advice });
}

function describePlace({ place, asker, reader, userId }: LookupContext): string {
  const who = userId === null ? "the unnamed user" : `user ${userId}`;
  const whose =
    reader.agentId === undefined ? `as agent ${asker.agentId} of` : `in agent ${asker.agentId} of`;
  return `${place} ${whose} ${who}`;
}

export async function resolveTrashed(open: OpenCalls, name: string): Promise<TrashRow> {
  const { sessions } = await open.calls.call("sessions.trash", open.reader);
  const found = findTrashed(sessions, name, open.asker, { prefix: true });
  if (found !== null) return found;
  const advice = `Searched the trash in ${describePlace(open)}; see ${commandLine(open, "sessions", "ls", "--trash")}`;
  throw new SkeinError("not_found", { what: "Session", name, advice });
}

/**
 * Whether a name is a file, which means that it contains a slash or ends in `.jsonl`. Every other name is a session
 * reference.
 */
export function isFileName(name: string): boolean {
  return /[/\\]|\.jsonl$/.test(name);
}

export async function findSession(folder: Folder, name: string): Promise<SessionRecord> {
  const { store, scope, asker } = folder;
  const found = await resolveSession(store.sessions, scope, asker, name, { prefix: true });
  if (found !== null) return found;
  const looked = { ...folder, place: store.root, reader: scope, userId: scope.userId ?? null };
  throw sessionNotFound(looked, name, await store.sessions.trashed(scope));
}

/**
 * Resolves the session to send to. A key can name a session that does not exist yet. Any other reference must resolve
 * to a session.
 */
export async function resolveOrNew(open: OpenCalls, ref: string): Promise<SessionParams> {
  const { asker, user } = open;
  const key =
    keyOfReference(ref, asker) === null ? (await resolveRef(open, ref, { canBegin: true })).key : ref;
  return { key, agentId: asker.agentId, ...user };
}

const shortestEnding = 4;
const chunk = 1000;
const mostCandidates = 5;

/** Returns the ID that equals the text, or else the only ID that ends with it. */
export function matchEntryId(ids: Iterable<string>, text: string): string | null {
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

/** Reads the whole session only if the text is not a complete ID. */
export async function resolveEntryInStore(
  folder: Folder,
  record: SessionRecord,
  text: string,
): Promise<string> {
  if ((await folder.store.sessions.entry(folder.scope, record.sessionId, text)) !== null) return text;
  const ids: string[] = [];
  for await (const id of entryIds(folder, record)) ids.push(id);
  return matchEntryId(ids, text) ?? noSuchEntry(text);
}

export async function resolveEntry(
  { calls }: Pick<OpenCalls, "calls">,
  session: SessionParams,
  text: string,
): Promise<string> {
  try {
    await calls.call("sessions.entries", { ...session, along: "all", after: text, limit: 1 });
    return text;
  } catch (error) {
    if (errorCodeOf(error) !== "not_found") throw error;
  }
  const { entries } = await fetchTree({ calls }, session);
  const ids = entries.map(({ id }) => id);
  return matchEntryId(ids, text) ?? noSuchEntry(text);
}

/** Throws if an option that reads other branches was given for a single file. */
export function refuseForFile(options: Readonly<Record<string, string | undefined>>): void {
  const given = Object.keys(options).find((name) => options[name] !== undefined);
  if (given === undefined) return;
  throw new SkeinError("invalid_arguments", {
    problem: `${given} does not work on a single file`,
    advice: "Specify a session in the folder, or import the file first",
  });
}

function noSuchEntry(text: string): never {
  const advice =
    "Use an ID printed by `sessions tree` or `sessions show`, or its last characters if they are unique";
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

/** A session in a method's params. */
export interface SessionParams {
  readonly key: string;
  readonly agentId?: string;
  readonly userId?: string;
}

const pageSize = 10_000;

/** Fetches all pages of a session's tree. */
export async function fetchTree(
  { calls }: Pick<OpenCalls, "calls">,
  session: SessionParams,
): Promise<TreePayload> {
  const asked = { ...session, limit: pageSize };
  let { nextAfter, ...view } = await calls.call("sessions.tree", asked);
  const entries = [...view.entries];
  while (nextAfter !== undefined) {
    ({ nextAfter, ...view } = await calls.call("sessions.tree", { ...asked, after: nextAfter }));
    for (const entry of view.entries) entries.push(entry);
  }
  return { ...view, entries };
}
