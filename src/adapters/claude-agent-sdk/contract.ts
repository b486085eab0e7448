/**
 * The SDK's interface for a session store. The SDK is not imported here, because it is large and optional;
 * `test/frameworks` checks that these types match its own.
 */

/** Identifies a transcript. Transcripts of sub-agents have a `subpath`. */
export interface TranscriptKey {
  projectKey: string;
  sessionId: string;
  subpath?: string;
}

/** An entry of a transcript, which is stored unchanged. */
export interface TranscriptEntry {
  type: string;
  uuid?: string;
  timestamp?: string;
  [field: string]: unknown;
}

/** A session's title and other data for lists, which only the SDK interprets. */
export interface TranscriptSummary {
  sessionId: string;
  mtime: number;
  data: Record<string, unknown>;
}

/** The `SessionStore` of the Claude Agent SDK, with all its optional methods. */
export interface ClaudeSessionStore {
  append(key: TranscriptKey, entries: TranscriptEntry[]): Promise<void>;
  load(key: TranscriptKey): Promise<TranscriptEntry[] | null>;
  listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]>;
  listSessionSummaries(projectKey: string): Promise<TranscriptSummary[]>;
  delete(key: TranscriptKey): Promise<void>;
  listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]>;
}

/** The part of the SDK that the adapter uses. */
export interface ClaudeAgentSdk {
  foldSessionSummary(
    before: TranscriptSummary | undefined,
    key: TranscriptKey,
    entries: TranscriptEntry[],
    options?: { mtime?: number },
  ): TranscriptSummary;
}
