/** The identity of a session. A record, a row and a run each have one, and pass it on unchanged. */
export interface SessionRef {
  /** Stays the same for good; a reset gives the key to a session with another uid. */
  readonly uid: string;
  /** `null`: the unnamed user. */
  readonly userId: string | null;
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
}

/** The identity alone of a value that has one: for what is written down or sent, where other fields must not follow. */
export function sessionRefOf({ uid, userId, agentId, key, sessionId }: SessionRef): SessionRef {
  return { uid, userId, agentId, key, sessionId };
}
