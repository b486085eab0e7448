import "./check-node.ts";

export type {
  ClaudeSessionStore,
  TranscriptEntry,
  TranscriptKey,
  TranscriptSummary,
} from "./adapters/claude-agent-sdk/contract.ts";
export { openSessionStore, type SessionStoreOptions } from "./adapters/claude-agent-sdk/session-store.ts";
