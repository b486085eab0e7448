import type { ContextOptions, SessionContext } from "../../core/context.ts";
import { SkeinError } from "../../core/errors.ts";
import { parseKey } from "../../core/keys.ts";
import { parseSessionId } from "../../core/names.ts";
import type { Plan } from "../../core/plan.ts";
import type { Lookup } from "../../core/references.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { ChangeFeed } from "../changes.ts";
import { inScope } from "../changes.ts";
import type {
  Appended,
  AppendItem,
  AppendOptions,
  EntryPage,
  EntryRange,
  ListedSession,
  MetaPatch,
  Redaction,
  Scope,
  SessionInit,
  SessionPage,
  SessionQuery,
  SessionRecord,
  SessionStore,
  TrashedSession,
} from "../contract.ts";
import { mostEntries, pageOf } from "../entry-page.ts";
import { placeOfKey } from "../key-place.ts";
import { decodeCursor, encodeCursor, limitOf } from "../listing.ts";
import { applyPatch, firstMeta } from "../meta.ts";
import { checkVersion, noSuchSession } from "../refusals.ts";
import { metaChanges, metaDraft } from "../session-meta.ts";
import type { SessionCatalogue } from "./catalogue.ts";
import { pageByIndex } from "./indexing.ts";
import type { SessionFile } from "./session-file.ts";
import { recordOf } from "./session-record.ts";
import type { SessionRow, SessionState } from "./work-db.ts";
import { isThere } from "./work-db.ts";

/** Sessions and entries in files. What was said is in the logs; what is taken, in `work.db`; lists, in `index.db`. */
export class FileSessions implements SessionStore {
  readonly #catalogue: SessionCatalogue;
  readonly #feed: ChangeFeed;

  constructor(catalogue: SessionCatalogue, feed: ChangeFeed) {
    this.#catalogue = catalogue;
    this.#feed = feed;
  }

  async create(scope: Scope, init: SessionInit): Promise<SessionRecord> {
    await this.#catalogue.knowUser(scope.userId ?? null);
    const row = this.#accept(scope, init, "pending");
    const file = await this.#orRelease(row, this.#catalogue.open(row));
    return this.#announce("created", row, file);
  }

  async get(scope: Scope, sessionId: string): Promise<SessionRecord | null> {
    const row = this.#row(scope, sessionId);
    return row === null ? null : recordOf(row, await this.#catalogue.open(row));
  }

  async find(scope: Scope, lookup: Lookup): Promise<readonly SessionRecord[]> {
    const rows = this.#rowsFor(scope.userId ?? null, lookup).filter(
      (row) => isThere(row) && inScope(scope, row),
    );
    return Promise.all(rows.map(async (row) => recordOf(row, await this.#catalogue.open(row))));
  }

  async list(scope: Scope, query: SessionQuery): Promise<SessionPage> {
    const limit = limitOf(query.limit);
    const place = decodeCursor(query.cursor);
    const behind = await this.#catalogue.catchUp();
    const found = this.#catalogue.index.list(scope, query, limit + 1, place);
    const last = found[limit - 1];
    const nextCursor = found.length > limit && last !== undefined ? encodeCursor(last) : null;
    return { sessions: found.slice(0, limit) as ListedSession[], nextCursor, behind };
  }

  async patch(
    scope: Scope,
    sessionId: string,
    changes: MetaPatch,
    options: { ifVersion?: number } = {},
  ): Promise<SessionRecord> {
    const row = this.#require(scope, sessionId);
    const file = await this.#catalogue.open(row);
    const writing = file.write((tree) => {
      const { meta, version } = file.meta;
      checkVersion(version, options.ifVersion);
      const next = applyPatch(meta, changes);
      if (next === meta) return tree.plan([]);
      if (next.label !== meta.label) this.#catalogue.work.claimLabel(row.uid, next.label ?? null);
      return tree.plan([{ draft: metaDraft(row.uid, metaChanges(meta, next)) }]);
    }, this.#marking(row));
    const plan = await writing.catch((error: unknown) => {
      // The log decides; what it did not take is not claimed either.
      const label = file.meta.meta.label ?? null;
      if (label !== this.#catalogue.work.byUid(row.uid)?.label)
        this.#catalogue.work.claimLabel(row.uid, label);
      throw error;
    });
    if (plan.nodes.length === 0) return recordOf(row, file);
    return this.#announce("patched", row, file);
  }

  async append(
    scope: Scope,
    sessionId: string,
    items: readonly AppendItem[],
    options: AppendOptions = {},
  ): Promise<Appended> {
    const row = this.#require(scope, sessionId);
    const file = await this.#catalogue.open(row);
    const fence = options.fence === undefined ? {} : { fence: options.fence };
    const plan = await file.write((tree) => tree.plan(items, options.expectedLeafId), {
      ...this.#marking(row),
      ...fence,
      needs: items.flatMap(idsAskedFor),
    });
    this.#appended(row, file, plan);
    return { entries: plan.entries, leafId: file.recent.leafId };
  }

  async branch(scope: Scope, sessionId: string, targetId: string | null): Promise<SessionRecord> {
    const row = this.#require(scope, sessionId);
    const file = await this.#catalogue.open(row);
    const needs = targetId === null ? [] : [targetId];
    const plan = await file.write((tree) => tree.planBranch(targetId), { ...this.#marking(row), needs });
    this.#appended(row, file, plan);
    return recordOf(row, file);
  }

  async fork(
    scope: Scope,
    sessionId: string,
    entryId: string | null,
    init: SessionInit,
  ): Promise<SessionRecord> {
    const from = this.#require(scope, sessionId);
    const source = await this.#catalogue.open(from);
    if (entryId !== null) source.whole.path(entryId);
    const row = this.#accept(scope, init, "forking", this.#catalogue.pathOf(from));
    const fork = source.whole.fork(entryId, { id: row.sessionId, cwd: init.cwd });
    const file = await this.#orRelease(row, this.#catalogue.create(row, fork));
    this.#catalogue.work.move(row.uid, "forking", "live");
    return this.#announce("created", row, file);
  }

  async context(
    scope: Scope,
    sessionId: string,
    options: ContextOptions = {},
  ): Promise<SessionContext | null> {
    const row = this.#row(scope, sessionId);
    if (row === null) return null;
    const file = await this.#catalogue.open(row);
    const context = file.recent.context(undefined, options);
    return { ...context, diagnostics: [...context.diagnostics, ...file.findings] };
  }

  async page(scope: Scope, sessionId: string, range: EntryRange): Promise<EntryPage | null> {
    const row = this.#row(scope, sessionId);
    if (row === null) return null;
    const limit = limitOf(range.limit, mostEntries);
    const file = await this.#catalogue.openIndexed(row);
    const page =
      recentPage(file.recent, { ...range, limit }) ??
      pageByIndex(this.#catalogue.index, row.uid, file, { ...range, limit });
    if (page !== null) return page;
    const tree = file.whole;
    return pageOf(range.along === "branch" ? tree.path() : [...tree.entries()], tree.leafId, range);
  }

  async remove(scope: Scope, sessionId: string): Promise<boolean> {
    const row = this.#row(scope, sessionId);
    if (row === null) return false;
    const record = recordOf(row, await this.#catalogue.open(row));
    if (!(await this.#catalogue.trash(row))) return false;
    this.#feed.publish({ type: "removed", session: record });
    return true;
  }

  async restore(scope: Scope, sessionId: string): Promise<SessionRecord> {
    const row = this.#catalogue.work.byId(scope.userId ?? null, sessionId);
    if (row === null || row.state !== "trashed" || !inScope(scope, row)) return noSuchSession(sessionId);
    const file = await this.#catalogue.untrash(row);
    return this.#announce("restored", row, file);
  }

  trashed(_scope: Scope): Promise<readonly TrashedSession[]> {
    throw new Error("under way");
  }
  purge(_scope: Scope, _sessionId: string): Promise<boolean> {
    throw new Error("under way");
  }
  adopt(_scope: Scope, _init: SessionInit, _tree: SessionTree): Promise<SessionRecord> {
    throw new Error("under way");
  }
  reset(
    _scope: Scope,
    _sessionId: string,
    _options?: { sessionId?: string },
  ): Promise<{ old: SessionRecord; fresh: SessionRecord }> {
    throw new Error("under way");
  }
  redact(_scope: Scope, _sessionId: string, _entryIds: readonly string[]): Promise<Redaction> {
    throw new Error("under way");
  }
  purgeUser(_scope: Scope): Promise<{ sessions: number }> {
    throw new Error("under way");
  }

  /** Takes key, id and label; from here on the session exists, whatever happens to this process. */
  #accept(scope: Scope, init: SessionInit, state: SessionState, parentSession?: string): SessionRow {
    const { key, agentId } = placeOfKey(scope, init.key);
    const sessionId = init.sessionId === undefined ? this.#catalogue.newId() : parseSessionId(init.sessionId);
    const meta = firstMeta(init.meta);
    const row: SessionRow = {
      uid: this.#catalogue.newId(),
      userId: scope.userId ?? null,
      agentId,
      key,
      sessionId,
      label: meta.label ?? null,
      createdAt: this.#catalogue.now(),
      state,
      first: { cwd: init.cwd, meta, ...(parentSession === undefined ? {} : { parentSession }) },
    };
    this.#catalogue.work.claim(row);
    return row;
  }

  /** A session that could not be written is not there, and its names are free again. */
  async #orRelease(row: SessionRow, opening: Promise<SessionFile>): Promise<SessionFile> {
    try {
      return await opening;
    } catch (error) {
      this.#catalogue.work.release(row.uid);
      if (error instanceof SkeinError) throw error;
      const advice = "Nothing was created; make room on the disk and try again";
      throw new SkeinError(
        "write_failed",
        { file: this.#catalogue.pathOf(row), problem: (error as Error).message, advice },
        { cause: error },
      );
    }
  }

  #row(scope: Scope, sessionId: string): SessionRow | null {
    const row = this.#catalogue.work.byId(scope.userId ?? null, sessionId);
    return row !== null && isThere(row) && inScope(scope, row) ? row : null;
  }

  #require(scope: Scope, sessionId: string): SessionRow {
    return this.#row(scope, sessionId) ?? noSuchSession(sessionId);
  }

  #rowsFor(userId: string | null, lookup: Lookup): SessionRow[] {
    const { work } = this.#catalogue;
    const one = (row: SessionRow | null) => (row === null ? [] : [row]);
    switch (lookup.by) {
      case "key":
        return one(work.byKey(userId, lookup.key));
      case "sessionId":
        return one(work.byId(userId, lookup.sessionId));
      case "label":
        return one(work.byLabel(userId, lookup.agentId, lookup.label));
      case "spawnId":
        return work.bySpawnId(userId, lookup.spawnId).filter(({ key }) => isSpawn(key, lookup.spawnId));
      case "prefix":
        return work.byIdPrefix(userId, lookup.prefix);
    }
  }

  /** Before a log grows, the index is marked as possibly behind. */
  #marking(row: SessionRow): { before: () => void } {
    return { before: () => this.#catalogue.markDirty(row.uid) };
  }

  #appended(row: SessionRow, file: SessionFile, plan: Plan): void {
    if (plan.nodes.length === 0 || !this.#feed.isHeard) return;
    const entries = plan.nodes.map((node) => node.entry);
    this.#feed.publish({ type: "appended", session: recordOf(row, file), entries });
  }

  #announce(type: "created" | "patched" | "restored", row: SessionRow, file: SessionFile): SessionRecord {
    const session = recordOf(row, file);
    this.#catalogue.markDirty(row.uid);
    this.#feed.publish({ type, session });
    return session;
  }
}

/** The newest page of the branch, where the working set alone has enough of it. */
function recentPage(tree: SessionTree, range: EntryRange): EntryPage | null {
  if (range.along !== "branch" || range.before !== undefined || range.after !== undefined) return null;
  const path = tree.path();
  const isCut = path[0] !== undefined && path[0].parentId !== null;
  if (isCut && path.length <= range.limit) return null;
  return pageOf(path, tree.leafId, range);
}

/** The ids that an item must know of: its own, and those that it points at. */
function idsAskedFor({ draft, id }: AppendItem): string[] {
  const target =
    draft?.type === "label" ? draft.targetId : draft?.type === "compaction" ? draft.firstKeptEntryId : null;
  return [id, target].filter((each) => typeof each === "string");
}

function isSpawn(key: string, spawnId: string): boolean {
  const parsed = parseKey(key);
  return parsed.form === "subagent" && parsed.thread === undefined && parsed.spawnId === spawnId;
}
