import { SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { readKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { ImportedSession, ImportLoss } from "../interchange/imported-session.ts";
import { standInId, toSessionId } from "../interchange/imported-session.ts";
import type { ImportedRow, SkippedRow } from "../protocol/interchange.ts";
import type {
  Json,
  Scope,
  SessionInit,
  SessionMeta,
  SessionStore,
  TrashedSession,
} from "../store/contract.ts";
import { claimsForDisplay, harmlessMeta, metaOf, readMeta } from "../store/session-meta.ts";
import { nameNewSession } from "./resolve-context.ts";

/** The fields that a session list gives for a transcript in the same folder. */
export interface ImportWish {
  /** The agent named by the transcript's folder. */
  readonly agentId?: string;
  readonly key?: string;
  readonly sessionId?: string;
  readonly meta?: SessionMeta;
  readonly notKept?: readonly ImportLoss[];
}

/** The operator's settings for the imported sessions. */
export interface ImportSettings {
  /** A key, a short key or a session ID, as for a new session. Allowed only when importing a single session. */
  readonly key?: string | undefined;
  /** Allowed only when importing a single session. */
  readonly label?: string | undefined;
  readonly cwd?: string | undefined;
  readonly model?: string | undefined;
  readonly sendPolicy?: "allow" | "deny" | undefined;
  readonly delivery?: NonNullable<SessionMeta["delivery"]> | undefined;
  /** Whether to apply the keys, working directories and metadata stated in the files. */
  readonly keepMetadata?: boolean | undefined;
}

interface ImporterOptions {
  /** The agent for sessions whose folder does not name one. */
  readonly agentId: string;
  readonly dryRun: boolean;
  readonly settings?: ImportSettings;
  readonly clock: { now(): number };
  /**
   * Returns the working directory for an agent's session. Pass `null` for the default. Throws if the folder is not
   * allowed.
   */
  cwdFor(agentId: string, wanted: string | null): string;
}

type ImportOutcome =
  | { readonly imported: Omit<ImportedRow, "file"> }
  | { readonly skipped: Omit<SkippedRow, "file"> };

/**
 * Imports sessions from other programs one after the other. A session that has already been imported, recognized by its
 * origin, is skipped. The key, folder and metadata stated in a file take effect only if the operator allows this.
 * Otherwise, they are kept in `importedFrom.claimed` for display. A stated key or label that is already taken is
 * dropped.
 */
export class SessionImporter {
  readonly #sessions: SessionStore;
  readonly #scope: Scope;
  readonly #options: ImporterOptions;
  readonly #settings: ImportSettings;
  /**
   * The names that this import has used, or would use in a dry run: session IDs with their origins, keys and labels.
   */
  readonly #ids = new Map<string, { readonly key: string; readonly origin: Json }>();
  readonly #names = new Set<string>();
  /** Read only once, because an import can have thousands of files. */
  #trashed: readonly TrashedSession[] | null = null;

  constructor(sessions: SessionStore, scope: Scope, options: ImporterOptions) {
    this.#sessions = sessions;
    this.#scope = scope;
    this.#options = options;
    this.#settings = options.settings ?? {};
  }

  async import(source: ImportedSession, wish: ImportWish = {}): Promise<ImportOutcome> {
    const notes: ImportLoss[] = [...source.notKept, ...(wish.notKept ?? [])];
    const wanted = wish.sessionId ?? toSessionId(source.sessionId);
    let sessionId = wanted;
    let known = await this.#knownSession(sessionId, source);
    if (known === "taken") {
      sessionId = standInId(`${source.source} ${source.tree.header.skein?.uid} ${wanted}`);
      known = await this.#knownSession(sessionId, source);
      const what = "The session ID was not kept: another session already has it.";
      notes.push({ what, count: 1, example: wanted });
    }
    if (known === "taken") throw taken("session ID", sessionId);
    if (known !== null) return { skipped: known };
    const own = metaOf(source.tree.header, source.tree.entries());
    const claims: Claims = {
      key: wish.key ?? own.key,
      cwd: source.cwd,
      meta: { ...own.meta, ...wish.meta },
    };
    const key = await this.#keyFor(
      claims,
      { agentId: wish.agentId ?? this.#options.agentId, sessionId },
      notes,
    );
    const label = await this.#labelFor(claims, key, notes);
    const cwd = this.#cwdFor(claims, key, notes);
    const origin = originOf(source, claims, this.#options.clock.now());
    const { model, sendPolicy, delivery } = this.#settings;
    const { label: _claimed, ...meta } = this.#metaFor(claims);
    const set = present({ model, sendPolicy, delivery: delivery && { ...delivery } });
    const applied = { ...meta, ...set, ...present({ label }) };
    this.#noteClaims(claims, { key, cwd, meta: applied }, notes);
    const init: SessionInit = { key, sessionId, cwd, meta: { ...applied, importedFrom: origin } };
    if (!this.#options.dryRun) await this.#sessions.adopt(this.#scope, init, source.tree);
    this.#ids.set(sessionId.toLowerCase(), { key, origin });
    this.#names.add(`key ${key}`);
    if (label !== null) this.#names.add(labelClaim(key, label));
    return {
      imported: { key, sessionId, entries: source.tree.size, notKept: notes.map((note) => ({ ...note })) },
    };
  }

  /**
   * Returns why the session is skipped, `taken` if another session has the ID, or `null` if the ID is free.
   */
  async #knownSession(
    sessionId: string,
    source: ImportedSession,
  ): Promise<Omit<SkippedRow, "file"> | "taken" | null> {
    const id = sessionId.toLowerCase();
    const now = this.#ids.get(id);
    if (now !== undefined) {
      const why = isSame(now.origin, source) ? "named twice" : "another file has the same session ID";
      return { key: now.key, sessionId, why };
    }
    const found = await this.#sessions.get(this.#scope, sessionId);
    if (found !== null) {
      if (found.uid === source.tree.header.skein?.uid)
        return { key: found.key, sessionId, why: "an export of a session that already exists here" };
      if (!isFrom(found.meta.importedFrom, source)) return "taken";
      const isOld = !isSame(found.meta.importedFrom, source);
      const why = isOld ? "already imported, but changed since" : "already imported";
      return { key: found.key, sessionId, why };
    }
    this.#trashed ??= await this.#sessions.trashed(this.#scope);
    const inTrash = this.#trashed.find((each) => each.sessionId.toLowerCase() === id);
    return inTrash === undefined ? null : { key: inTrash.key, sessionId, why: "in the trash" };
  }

  #metaFor({ meta }: Claims): SessionMeta {
    return this.#settings.keepMetadata === true ? readMeta(meta) : harmlessMeta(meta);
  }

  /**
   * Returns the operator's key, which must be free. If there is none, returns the stated key if it is kept, otherwise a
   * key with the session ID.
   */
  async #keyFor(
    claims: Claims,
    place: { readonly agentId: string; readonly sessionId: string },
    notes: ImportLoss[],
  ): Promise<string> {
    const { key: set, keepMetadata } = this.#settings;
    if (set === undefined) return this.#freeKey(keepMetadata === true ? claims.key : null, place, notes);
    const { key } = nameNewSession(set, { agentId: place.agentId }, { newId: () => place.sessionId });
    if (await this.#isTaken(key)) throw taken("key", key);
    return key;
  }

  async #labelFor({ meta }: Claims, key: string, notes: ImportLoss[]): Promise<string | null> {
    const { label: set, keepMetadata } = this.#settings;
    if (set === undefined)
      return keepMetadata === true ? this.#freeLabel(readMeta(meta).label, key, notes) : null;
    if (await this.#isLabelTaken(key, set)) throw taken("label", set);
    return set;
  }

  /**
   * Returns the operator's folder, which must be allowed. If there is none, returns the stated folder if it is kept,
   * otherwise the agent's default.
   */
  #cwdFor(claims: Claims, key: string, notes: ImportLoss[]): string {
    const { cwd: set, keepMetadata } = this.#settings;
    const agentId = agentOf(key) ?? this.#options.agentId;
    if (set !== undefined) return this.#options.cwdFor(agentId, set);
    if (keepMetadata !== true || claims.cwd === "") return this.#options.cwdFor(agentId, null);
    try {
      return this.#options.cwdFor(agentId, claims.cwd);
    } catch (error) {
      if (!(error instanceof SkeinError)) throw error;
      const what =
        "The working directory does not exist or is not allowed. The agent's default is used instead.";
      notes.push({ what, count: 1, example: claims.cwd });
      return this.#options.cwdFor(agentId, null);
    }
  }

  /** Adds notes about claims in the file that were ignored. */
  #noteClaims(
    claims: Claims,
    applied: { readonly key: string; readonly cwd: string; readonly meta: SessionMeta },
    notes: ImportLoss[],
  ): void {
    if (this.#settings.keepMetadata === true) return;
    const ignored = [
      ...(claims.key === null || claims.key === applied.key ? [] : ["key"]),
      ...(claims.cwd === "" || claims.cwd === applied.cwd ? [] : ["cwd"]),
      ...Object.keys(readMeta(claims.meta)).filter((field) => applied.meta[field] === undefined),
    ];
    if (ignored.length === 0) return;
    const what = "The file's metadata is kept for display only. Use --keep-metadata to apply it.";
    notes.unshift({ what, count: ignored.length, example: ignored.slice(0, 12).join(", ") });
  }

  /**
   * Returns the stated key if it is valid, belongs to an agent and is free. Otherwise, returns a key with the session
   * ID.
   */
  async #freeKey(
    wished: string | null,
    place: { readonly agentId: string; readonly sessionId: string },
    notes: ImportLoss[],
  ): Promise<string> {
    const agentId = wished === null ? null : agentOf(wished);
    const own = `agent:${agentId ?? place.agentId}:session:${place.sessionId}`;
    if (wished === null || wished === own) return own;
    if (agentId !== null && !(await this.#isTaken(wished))) return wished;
    const why =
      agentId === null ? "it is not a valid key for an agent's session" : "another session already has it";
    notes.push({ what: `The key was not kept: ${why}.`, count: 1, example: wished });
    return own;
  }

  async #freeLabel(wished: string | undefined, key: string, notes: ImportLoss[]): Promise<string | null> {
    if (wished === undefined) return null;
    if (!(await this.#isLabelTaken(key, wished))) return wished;
    notes.push({
      what: "The label was not kept: another session already has it.",
      count: 1,
      example: wished,
    });
    return null;
  }

  async #isLabelTaken(key: string, label: string): Promise<boolean> {
    if (this.#names.has(labelClaim(key, label))) return true;
    const lookup = { by: "label", label, agentId: agentOf(key) ?? this.#options.agentId } as const;
    return (await this.#sessions.find(this.#scope, lookup)).length > 0;
  }

  async #isTaken(key: string): Promise<boolean> {
    if (this.#names.has(`key ${key}`)) return true;
    return (await this.#sessions.find(this.#scope, { by: "key", key })).length > 0;
  }
}

/** The properties that a file states for its session. */
interface Claims {
  readonly key: string | null;
  readonly cwd: string;
  readonly meta: SessionMeta;
}

function taken(what: "key" | "label" | "session ID", name: string): SkeinError {
  const problem = `Another session already has the ${what} "${name}"`;
  return new SkeinError("conflict", { problem, advice: `Import it under a different ${what}` });
}

/** Returns `null` if the key is invalid or belongs to no agent. */
function agentOf(key: string): string | null {
  const parsed = readKey(key);
  return "problem" in parsed || parsed.form === "special" ? null : parsed.agentId;
}

function labelClaim(key: string, label: string): string {
  return `label ${agentOf(key)} ${label}`;
}

/** Returns a session's origin, which is stored in its metadata. */
function originOf(
  { source, sessionId, tree }: ImportedSession,
  { key, cwd, meta }: Claims,
  now: number,
): Json {
  const { imported } = tree.header.skein ?? {};
  const about = isRecord(imported) ? (claimsForDisplay(imported as Record<string, Json>) as object) : {};
  const claimed = claimsForDisplay({ ...present({ key }), cwd, ...meta });
  const importedAt = new Date(now).toISOString();
  return { ...about, source, sessionId, entries: tree.size, importedAt, claimed };
}

function isFrom(origin: unknown, { source, sessionId }: ImportedSession): boolean {
  return isRecord(origin) && origin.source === source && origin.sessionId === sessionId;
}

function isSame(origin: unknown, session: ImportedSession): boolean {
  return isFrom(origin, session) && isRecord(origin) && origin.entries === session.tree.size;
}
