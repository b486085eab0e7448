import { spawnIdOf } from "../../core/keys.ts";
import type { Lookup } from "../../core/references.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { Scope, SessionDigest, SessionRecord, TrashedSession } from "../contract.ts";
import { trashedSession } from "../new-session.ts";
import { inScope, noSuchSession, throwTaken } from "../rules.ts";

/** A session in the memory store. `record` is replaced on every change. */
export interface MemorySession {
  record: SessionRecord;
  tree: SessionTree;
  digest: SessionDigest;
  /** When the session was moved to the trash, or `null` if it is not in the trash. */
  removedAt: number | null;
}

/** All users' sessions, and the values that must be unique within a user. */
export class SessionTable {
  readonly #sessions = new Map<string, MemorySession>();

  add(session: MemorySession): void {
    this.#sessions.set(session.record.uid, session);
  }

  delete({ record }: MemorySession): void {
    this.#sessions.delete(record.uid);
  }

  /** Yields the live sessions in a scope, or those in the trash. */
  *in(scope: Scope, from: "live" | "trash" = "live"): Generator<MemorySession> {
    for (const session of this.#sessions.values()) {
      if ((session.removedAt === null) === (from === "live") && inScope(scope, session.record)) yield session;
    }
  }

  get(scope: Scope, sessionId: string, from: "live" | "trash" = "live"): MemorySession | null {
    for (const session of this.in(scope, from)) if (hasId(session, sessionId)) return session;
    return null;
  }

  require(scope: Scope, sessionId: string): MemorySession {
    return this.get(scope, sessionId) ?? noSuchSession(sessionId);
  }

  find(scope: Scope, lookup: Lookup): MemorySession[] {
    return [...this.in(scope)].filter((session) => matches(session, lookup));
  }

  /** Returns all of a user's sessions, including the trash. */
  ofUser(userId: string | null): MemorySession[] {
    return [...this.#sessions.values()].filter(({ record }) => record.userId === userId);
  }

  users(): (string | null)[] {
    return [...new Set([...this.#sessions.values()].map(({ record }) => record.userId))];
  }

  /**
   * Throws `conflict` if another of the user's sessions has one of these values. A session in the trash keeps its ID.
   */
  claim(
    claim: Pick<SessionRecord, "userId" | "agentId" | "key" | "meta"> & { readonly sessionId?: string },
    self?: MemorySession,
  ): void {
    const { userId, agentId, key, sessionId, meta } = claim;
    for (const other of this.#sessions.values()) {
      if (other === self || other.record.userId !== userId) continue;
      if (sessionId !== undefined && hasId(other, sessionId)) throwTaken("session ID", sessionId);
      if (other.removedAt !== null) continue;
      if (other.record.key === key) throwTaken("session key", key);
      const hasLabel = other.record.agentId === agentId && other.record.meta.label === meta.label;
      if (meta.label !== undefined && hasLabel) throwTaken("label", meta.label);
    }
  }
}

export function trashedOf({ record, removedAt, digest }: MemorySession): TrashedSession {
  return trashedSession({ ...record, digest }, removedAt);
}

/** Compares session IDs case-insensitively because other stores use them as file names. */
export function hasId({ record }: MemorySession, sessionId: string): boolean {
  return record.sessionId.toLowerCase() === sessionId.toLowerCase();
}

function matches(session: MemorySession, lookup: Lookup): boolean {
  const { key, uid, agentId, sessionId, meta } = session.record;
  switch (lookup.by) {
    case "key":
      return key === lookup.key;
    case "spawnId":
      return spawnIdOf(key) === lookup.spawnId;
    case "sessionId":
      return hasId(session, lookup.sessionId);
    case "uid":
      return uid === lookup.uid;
    case "label":
      return meta.label === lookup.label && agentId === lookup.agentId;
    case "prefix":
      return sessionId.startsWith(lookup.prefix);
  }
}
