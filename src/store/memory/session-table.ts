import { kindOf, parseKey, spawnIdOf } from "../../core/keys.ts";
import type { Lookup } from "../../core/references.ts";
import type { SessionTree } from "../../core/tree.ts";
import type {
  ListedSession,
  Scope,
  SessionDigest,
  SessionMeta,
  SessionRecord,
  TrashedSession,
} from "../contract.ts";
import { inScope, noSuchSession, taken } from "../rules.ts";

/** A session as the memory store holds it. */
export interface HeldSession {
  readonly uid: string;
  readonly userId: string | null;
  readonly agentId: string;
  key: string;
  tree: SessionTree;
  readonly createdAt: number;
  meta: SessionMeta;
  version: number;
  updatedAt: number;
  digest: SessionDigest;
  /** When it went into the trash; `null`: it is not there. */
  removedAt: number | null;
}

/** The sessions of all users, and what must be unique among those of one. */
export class SessionTable {
  readonly #sessions = new Map<string, HeldSession>();

  add(session: HeldSession): void {
    this.#sessions.set(session.uid, session);
  }

  /** The live sessions of a scope. */
  *in(scope: Scope): Generator<HeldSession> {
    for (const session of this.#sessions.values()) {
      if (session.removedAt === null && inScope(scope, session)) yield session;
    }
  }

  get(scope: Scope, sessionId: string): HeldSession | null {
    for (const session of this.in(scope)) if (hasId(session, sessionId)) return session;
    return null;
  }

  require(scope: Scope, sessionId: string): HeldSession {
    return this.get(scope, sessionId) ?? noSuchSession(sessionId);
  }

  trashed(scope: Scope, sessionId: string): HeldSession | null {
    for (const session of this.inTrash(scope)) if (hasId(session, sessionId)) return session;
    return null;
  }

  /** The sessions of a scope that are in the trash. */
  *inTrash(scope: Scope): Generator<HeldSession> {
    for (const session of this.#sessions.values()) {
      if (session.removedAt !== null && inScope(scope, session)) yield session;
    }
  }

  /** All of a user, the trash too. */
  ofUser(userId: string | null): HeldSession[] {
    return [...this.#sessions.values()].filter((session) => session.userId === userId);
  }

  users(): (string | null)[] {
    return [...new Set([...this.#sessions.values()].map(({ userId }) => userId))];
  }

  forget(session: HeldSession): void {
    this.#sessions.delete(session.uid);
  }

  find(scope: Scope, lookup: Lookup): HeldSession[] {
    return [...this.in(scope)].filter((session) => matches(session, lookup));
  }

  /** Throws `conflict` when another session of the user has what this one claims. A trashed one keeps its id. */
  claim(
    claim: { userId: string | null; agentId: string; key: string; sessionId?: string; label?: string },
    self?: HeldSession,
  ): void {
    for (const other of this.#sessions.values()) {
      if (other === self || other.userId !== claim.userId) continue;
      if (claim.sessionId !== undefined && hasId(other, claim.sessionId))
        taken("session id", claim.sessionId);
      if (other.removedAt !== null) continue;
      if (other.key === claim.key) taken("session key", claim.key);
      const label = claim.label !== undefined && other.agentId === claim.agentId ? claim.label : undefined;
      if (label !== undefined && other.meta.label === label) taken("label", label);
    }
  }
}

export function recordOf(session: HeldSession): SessionRecord {
  const { uid, userId, agentId, key, version, meta, createdAt, updatedAt, tree } = session;
  return {
    uid,
    userId,
    agentId,
    key,
    kind: kindOf(parseKey(key)),
    sessionId: tree.header.id,
    cwd: tree.header.cwd ?? "",
    version,
    meta,
    name: tree.name,
    createdAt,
    updatedAt,
    leafId: tree.leafId,
  };
}

export function listedOf(session: HeldSession): ListedSession {
  return { ...recordOf(session), digest: session.digest };
}

export function trashedOf(session: HeldSession): TrashedSession {
  const { uid, userId, agentId, key, meta, removedAt, digest, tree } = session;
  const kind = kindOf(parseKey(key));
  const label = meta.label ?? null;
  return {
    uid,
    userId,
    agentId,
    key,
    kind,
    sessionId: tree.header.id,
    label,
    removedAt: removedAt ?? 0,
    bytes: digest.bytes,
  };
}

/** Session ids are the same without regard to case: they are file names. */
export function hasId({ tree }: HeldSession, sessionId: string): boolean {
  return tree.header.id.toLowerCase() === sessionId.toLowerCase();
}

function matches(session: HeldSession, lookup: Lookup): boolean {
  switch (lookup.by) {
    case "key":
      return session.key === lookup.key;
    case "spawnId":
      return spawnIdOf(session.key) === lookup.spawnId;
    case "sessionId":
      return hasId(session, lookup.sessionId);
    case "uid":
      return session.uid === lookup.uid;
    case "label":
      return session.meta.label === lookup.label && session.agentId === lookup.agentId;
    case "prefix":
      return session.tree.header.id.startsWith(lookup.prefix);
  }
}
