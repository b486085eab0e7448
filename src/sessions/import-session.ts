import { readKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { isRecord } from "../core/shape.ts";
import type { ImportedSession, NotKept } from "../interchange/imported.ts";
import { ownSessionId } from "../interchange/imported.ts";
import type { ImportedRow, SkippedRow } from "../protocol/interchange.ts";
import type {
  Json,
  Scope,
  SessionInit,
  SessionMeta,
  SessionStore,
  TrashedSession,
} from "../store/contract.ts";
import { metaOf } from "../store/session-meta.ts";
import { sessionKeyOf } from "./session-key.ts";

/** What a list of sessions beside the transcripts says of one; everything may be left out. */
export interface ImportWish {
  /** Whose session it is when no key says so. */
  readonly agentId?: string;
  readonly key?: string;
  readonly sessionId?: string;
  readonly meta?: SessionMeta;
  readonly notKept?: readonly NotKept[];
}

export type ImportOutcome =
  | { readonly imported: Omit<ImportedRow, "file"> }
  | { readonly skipped: Omit<SkippedRow, "file"> };

/**
 * Brings sessions of other programs into a store, one after the other. What was imported before is skipped: it is known
 * by where it came from. A key or label that is taken costs the key or label, not the session.
 */
export class SessionImporter {
  readonly #sessions: SessionStore;
  readonly #scope: Scope;
  readonly #agentId: string;
  readonly #isDry: boolean;
  /** What this run has taken, or would have, were it not dry: session ids with what came from where, keys, labels. */
  readonly #ids = new Map<string, { readonly key: string; readonly origin: Json }>();
  readonly #names = new Set<string>();
  /** Looked at once, for a thousand files may be imported. */
  #trashed: readonly TrashedSession[] | null = null;

  constructor(
    sessions: SessionStore,
    scope: Scope,
    options: { readonly agentId: string; readonly dryRun: boolean },
  ) {
    this.#sessions = sessions;
    this.#scope = scope;
    this.#agentId = options.agentId;
    this.#isDry = options.dryRun;
  }

  async import(source: ImportedSession, wish: ImportWish = {}): Promise<ImportOutcome> {
    const sessionId = wish.sessionId ?? ownSessionId(source.sessionId);
    const before = await this.#importedBefore(sessionId, source);
    if (before !== null) return { skipped: before };
    const notes: NotKept[] = [...source.notKept, ...(wish.notKept ?? [])];
    const own = metaOf(source.tree.header, source.tree.entries());
    const agentId = wish.agentId ?? this.#agentId;
    const wished = wish.key ?? own.key ?? sessionKeyOf(source.tree);
    const key = await this.#freeKey(wished, { agentId, sessionId }, notes);
    const { label: wishedLabel, ...meta } = wish.meta ?? own.meta;
    const label = await this.#freeLabel(wishedLabel, key, notes);
    const origin = originOf(source);
    const init: SessionInit = {
      key,
      sessionId,
      cwd: source.cwd,
      meta: { ...meta, ...present({ label }), importedFrom: origin },
    };
    if (!this.#isDry) await this.#sessions.adopt(this.#scope, init, source.tree);
    this.#ids.set(sessionId.toLowerCase(), { key, origin });
    this.#names.add(`key ${key}`);
    if (label !== null) this.#names.add(labelClaim(key, label));
    return {
      imported: { key, sessionId, entries: source.tree.size, notKept: notes.map((note) => ({ ...note })) },
    };
  }

  async #importedBefore(
    sessionId: string,
    source: ImportedSession,
  ): Promise<Omit<SkippedRow, "file"> | null> {
    const id = sessionId.toLowerCase();
    const now = this.#ids.get(id);
    if (now !== undefined) {
      const why = isSame(now.origin, source) ? "named twice" : "another file has the same session id";
      return { key: now.key, sessionId, why };
    }
    const found = await this.#sessions.get(this.#scope, sessionId);
    if (found !== null && isFrom(found.meta.importedFrom, source)) {
      const isOld = !isSame(found.meta.importedFrom, source);
      const why = isOld ? "imported before, and changed since" : "imported before";
      return { key: found.key, sessionId, why };
    }
    this.#trashed ??= await this.#sessions.trashed(this.#scope);
    const inTrash = this.#trashed.find((each) => each.sessionId.toLowerCase() === id);
    return inTrash === undefined ? null : { key: inTrash.key, sessionId, why: "in the trash" };
  }

  /** The key that was wished for, where it is a key, means one session and is free; else one by the session id. */
  async #freeKey(
    wished: string | null,
    place: { readonly agentId: string; readonly sessionId: string },
    notes: NotKept[],
  ): Promise<string> {
    const agentId = wished === null ? null : agentOf(wished);
    const own = `agent:${agentId ?? place.agentId}:session:${place.sessionId}`;
    if (wished === null || wished === own) return own;
    if (agentId !== null && !(await this.#isTaken(wished))) return wished;
    const why = agentId === null ? "it is no key of an agent's session" : "another session has it";
    notes.push({ what: `The key was left out: ${why}.`, count: 1, example: wished });
    return own;
  }

  async #freeLabel(wished: string | undefined, key: string, notes: NotKept[]): Promise<string | null> {
    if (wished === undefined) return null;
    const lookup = { by: "label", label: wished, agentId: agentOf(key) ?? this.#agentId } as const;
    const found = await this.#sessions.find(this.#scope, lookup);
    if (found.length === 0 && !this.#names.has(labelClaim(key, wished))) return wished;
    notes.push({ what: "The label was left out: another session has it.", count: 1, example: wished });
    return null;
  }

  async #isTaken(key: string): Promise<boolean> {
    if (this.#names.has(`key ${key}`)) return true;
    return (await this.#sessions.find(this.#scope, { by: "key", key })).length > 0;
  }
}

/** `null` for what is no key, and for those that belong to no agent. */
function agentOf(key: string): string | null {
  const parsed = readKey(key);
  return "problem" in parsed || parsed.form === "special" ? null : parsed.agentId;
}

function labelClaim(key: string, label: string): string {
  return `label ${agentOf(key)} ${label}`;
}

/** Where a session came from, as its metadata keep it. */
function originOf({ source, sessionId, tree }: ImportedSession): Json {
  const { imported } = tree.header.skein ?? {};
  const about = isRecord(imported) ? (imported as Record<string, Json>) : {};
  return { ...about, source, sessionId, entries: tree.size };
}

function isFrom(origin: unknown, { source, sessionId }: ImportedSession): boolean {
  return isRecord(origin) && origin.source === source && origin.sessionId === sessionId;
}

function isSame(origin: unknown, session: ImportedSession): boolean {
  return isFrom(origin, session) && isRecord(origin) && origin.entries === session.tree.size;
}
