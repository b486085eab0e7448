import { KeyedMutex } from "../../core/concurrency.ts";
import { codeOf } from "../../core/errors.ts";
import { hashedId } from "../../core/hashed-id.ts";
import { formatKey, parseKey } from "../../core/keys.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { AppendItem, Json, Scope, SessionRecord, Store } from "../../store/contract.ts";
import { importPeer } from "../require-peer.ts";
import { SessionLog } from "../session-log.ts";
import type {
  ClaudeAgentSdk,
  ClaudeSessionStore,
  TranscriptEntry,
  TranscriptKey,
  TranscriptSummary,
} from "./contract.ts";
import { toShownEntries } from "./shown-entries.ts";
import { TranscriptIndex, transcriptType } from "./transcript-index.ts";

/** Where the sessions of the Claude Agent SDK are stored. */
export interface SessionStoreOptions {
  /** A store from `createStore`, or a back end's `openStore`. The adapter does not close it. */
  readonly store: Pick<Store, "sessions" | "state">;
  /** The owner of the sessions. If absent, they belong to the unnamed user. */
  readonly userId?: string;
  /** The agent that the sessions belong to. Defaults to `claude-code`. */
  readonly agentId?: string;
}

/** A summary, how many of the transcript's entries it covers, and the ID of the session's last entry at that time. */
type StoredSummary = TranscriptSummary & { readonly count: number; readonly lastId: string | null };

/** Entries that follow one another in the session's tree. */
interface Group {
  readonly parent: string | null;
  readonly items: AppendItem[];
}

const summaryKey = "claude-agent-sdk.summary";
const maxAttempts = 20;

/**
 * Opens a session store for the Claude Agent SDK. Each transcript is a session of one user. Transcripts of sub-agents
 * are child sessions. Requires the package `@anthropic-ai/claude-agent-sdk`.
 *
 * @example
 * ```ts
 * import { openSessionStore } from "skein/claude-agent-sdk";
 * import { createStore } from "skein/store";
 * const sessionStore = await openSessionStore({ store: await createStore({ dir: ".skein" }), userId: "ann" });
 * // for await (const message of query({ prompt: "Plan three days in Kyoto", options: { sessionStore } })) …
 * console.log(await sessionStore.listSessions("-home-ann-journeys"));
 * ```
 */
export async function openSessionStore(options: SessionStoreOptions): Promise<ClaudeSessionStore> {
  const name = "@anthropic-ai/claude-agent-sdk";
  const sdk = await importPeer<ClaudeAgentSdk>("claude-agent-sdk", name, ">=0.3.222 <0.4");
  return new SessionStore(sdk, options);
}

class SessionStore implements ClaudeSessionStore {
  readonly #sdk: ClaudeAgentSdk;
  readonly #store: SessionStoreOptions["store"];
  readonly #scope: Scope & { readonly agentId: string };
  readonly #log: SessionLog<TranscriptIndex>;
  readonly #mutex = new KeyedMutex();

  constructor(sdk: ClaudeAgentSdk, { store, userId, agentId = "claude-code" }: SessionStoreOptions) {
    this.#sdk = sdk;
    this.#store = store;
    this.#scope = { agentId: parseAgentId(agentId), ...present({ userId }) };
    this.#log = new SessionLog(store, this.#scope, {
      createIndex: () => new TranscriptIndex(),
      addEntry: (index, entry) => index.addEntry(entry),
    });
  }

  async append(key: TranscriptKey, entries: TranscriptEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const { sessionId } = await this.#openSession(key, entries);
    await this.#mutex.run(sessionId, async () => {
      const index = await this.#log.read(sessionId);
      try {
        for (const { parent, items } of groupEntries(sessionId, index, entries))
          await this.#log.appendAfter(sessionId, parent, items);
      } catch (error) {
        // The index contains entries that might not have been written.
        await this.#log.forget(sessionId);
        throw error;
      }
    });
    if (key.subpath === undefined) await this.#updateSummary(key, sessionId);
  }

  async load(key: TranscriptKey): Promise<TranscriptEntry[] | null> {
    const session = await this.#log.find(this.#keyOf(key));
    if (session === null) return null;
    const { entries } = await this.#log.read(session.sessionId);
    return entries.length === 0 ? null : structuredClone(entries);
  }

  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    const summaries = await this.listSessionSummaries(projectKey);
    return summaries.map(({ sessionId, mtime }) => ({ sessionId, mtime }));
  }

  async listSessionSummaries(projectKey: string): Promise<TranscriptSummary[]> {
    const found: TranscriptSummary[] = [];
    for await (const session of this.#log.list({ channels: ["claude-code"] })) {
      const place = placeIn(session.key);
      if (place === null || place.projectKey !== projectKey || place.subpath !== undefined) continue;
      const { summary } = await this.#readSummary(session.sessionId);
      // A process can be killed between writing a transcript and its summary.
      const isWhole = summary !== null && summary.lastId === (await this.#log.lastId(session.sessionId));
      const whole = isWhole ? summary : await this.#updateSummary(place, session.sessionId);
      if (whole !== null) found.push({ sessionId: place.sessionId, mtime: whole.mtime, data: whole.data });
    }
    return found;
  }

  /** Also deletes the transcripts of the session's sub-agents. */
  async delete(key: TranscriptKey): Promise<void> {
    const { projectKey, sessionId, subpath } = key;
    const subpaths = subpath === undefined ? await this.listSubkeys(key) : [];
    const keys = [...subpaths.map((each) => this.#keyOf({ ...key, subpath: each })), this.#keyOf(key)];
    await this.#log.erase(keys, (each) => {
      const place = placeIn(each);
      if (place?.projectKey !== projectKey || place.sessionId !== sessionId) return false;
      return subpath === undefined || place.subpath === subpath;
    });
  }

  async listSubkeys({ projectKey, sessionId }: { projectKey: string; sessionId: string }): Promise<string[]> {
    const found: string[] = [];
    for await (const child of this.#log.list({ spawnedBy: this.#keyOf({ projectKey, sessionId }) })) {
      const subpath = placeIn(child.key)?.subpath;
      if (subpath !== undefined) found.push(subpath);
    }
    return found;
  }

  #keyOf({ projectKey, sessionId, subpath }: TranscriptKey): string {
    const segments = ["project", projectKey, sessionId, ...(subpath === undefined ? [] : [subpath])];
    return formatKey({ form: "other", agentId: this.#scope.agentId, segments });
  }

  #openSession(key: TranscriptKey, entries: readonly TranscriptEntry[]): Promise<SessionRecord> {
    const { projectKey, sessionId, subpath } = key;
    const [cwd = process.cwd()] = entries.flatMap((entry) =>
      typeof entry.cwd === "string" ? entry.cwd : [],
    );
    const parent = subpath === undefined ? {} : { spawnedBy: this.#keyOf({ projectKey, sessionId }) };
    const meta = { channel: "claude-code", displayName: subpath ?? sessionId, ...parent };
    return this.#log.findOrCreate({ key: this.#keyOf(key), cwd, meta });
  }

  async #readSummary(sessionId: string): Promise<{ summary: StoredSummary | null; version: number | null }> {
    const found = await this.#store.state.get(this.#scope, sessionId, summaryKey);
    return { summary: (found?.value ?? null) as StoredSummary | null, version: found?.version ?? null };
  }

  /** Adds the entries that the summary does not cover yet. */
  async #updateSummary(key: TranscriptKey, sessionId: string): Promise<StoredSummary | null> {
    for (let attempt = 1; ; attempt++) {
      const { summary, version } = await this.#readSummary(sessionId);
      const { entries, lastId } = await this.#log.read(sessionId);
      const count = summary?.count ?? 0;
      if (entries.length === count && (summary === null || summary.lastId === lastId)) return summary;
      const added = structuredClone(entries.slice(count));
      const before = summary === null ? undefined : withoutCount(summary);
      const folded =
        before !== undefined && added.length === 0
          ? before
          : this.#sdk.foldSessionSummary(before, key, added, { mtime: Date.now() });
      const next: StoredSummary = { ...folded, count: entries.length, lastId };
      try {
        const options = { ifVersion: version };
        await this.#store.state.set(this.#scope, sessionId, summaryKey, next as unknown as Json, options);
        return next;
      } catch (error) {
        if (codeOf(error) !== "conflict" || attempt === maxAttempts) throw error;
      }
    }
  }
}

/**
 * Adds the entries to the index before they are written. An entry whose uuid is already in the index is skipped, so
 * that a retry changes nothing.
 */
function groupEntries(
  sessionId: string,
  index: TranscriptIndex,
  entries: readonly TranscriptEntry[],
): Group[] {
  const groups: Group[] = [];
  /** The last entry of the newest group that is part of the conversation. */
  let end: string | null = null;
  for (const entry of entries) {
    const { uuid } = entry;
    if (uuid !== undefined && index.has(uuid)) continue;
    const idOf = (...part: string[]) =>
      uuid === undefined ? {} : { id: hashedId("claude-code", sessionId, uuid, ...part) };
    const parent = index.parentEnd(entry);
    const items = toShownEntries(entry, index.shown).map((draft, position): AppendItem => {
      return { draft, ...idOf(String(position)) };
    });
    const shown = items.findLast(({ draft }) => draft.type !== "session_info");
    let group = groups.at(-1);
    if (group === undefined || (shown !== undefined && parent !== end)) {
      group = { parent, items: [] };
      groups.push(group);
      end = parent;
    }
    const ownEnd: string | null = shown?.id ?? parent;
    const data = { entry, end: ownEnd };
    group.items.push(...items, { draft: { type: "custom", customType: transcriptType, data }, ...idOf() });
    index.setEnd(entry, ownEnd);
    if (shown !== undefined) end = ownEnd;
  }
  return groups;
}

function withoutCount({ sessionId, mtime, data }: StoredSummary): TranscriptSummary {
  return { sessionId, mtime, data };
}

function placeIn(key: string): TranscriptKey | null {
  const parsed = parseKey(key);
  if (parsed.form !== "other") return null;
  const [kind, projectKey, sessionId, subpath] = parsed.segments;
  if (kind !== "project" || projectKey === undefined || sessionId === undefined) return null;
  return { projectKey, sessionId, ...present({ subpath }) };
}
