/** The identity of a session. Records, rows and runs contain it unchanged. */
export interface SessionRef {
  /** Never changes. A reset assigns the key to a session with a different uid. */
  readonly uid: string;
  /** `null` for the unnamed user. */
  readonly userId: string | null;
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
}

/** Returns only the identity so that it can be stored or sent without other fields. */
export function sessionRefOf({ uid, userId, agentId, key, sessionId }: SessionRef): SessionRef {
  return { uid, userId, agentId, key, sessionId };
}
