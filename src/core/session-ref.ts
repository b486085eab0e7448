/** The identity of a session. Records, rows and runs carry it unchanged. */
export interface SessionRef {
  /** Never changes. A reset gives the key to a session with another uid. */
  readonly uid: string;
  /** `null`: the unnamed user. */
  readonly userId: string | null;
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
}

/** Only the identity of a value, to store or send it without further fields. */
export function sessionRefOf({ uid, userId, agentId, key, sessionId }: SessionRef): SessionRef {
  return { uid, userId, agentId, key, sessionId };
}
