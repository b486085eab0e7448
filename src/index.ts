export type { Clock } from "./core/clock.ts";
export {
  buildContext,
  type ContextMessage,
  type ContextOptions,
  type SessionContext,
} from "./core/context.ts";
export type { Diagnostic } from "./core/diagnostics.ts";
export { type CorruptLine, type Entry, isCorrupt, type SessionHeader } from "./core/entries.ts";
export { type ErrorCode, SkeinError } from "./core/errors.ts";
export type { IdSource } from "./core/ids.ts";
export { formatKey, type ParsedKey, parseKey, type SessionKind } from "./core/keys.ts";
export type { Message } from "./core/messages.ts";
export { parseAgentId, parseSessionId } from "./core/names.ts";
export { type ParsedSession, parseSession } from "./core/parse-session.ts";
export { type Asker, displayKey, type Lookup, resolveReference } from "./core/references.ts";
export type { EntryDraft, MessageDraft } from "./core/seal.ts";
export { SessionTree, type TreeAppendOptions, type TreeOptions } from "./core/tree.ts";
export type { Hook, HookName, Hooks } from "./sessions/hook-events.ts";
export { HookRegistry, HookStop } from "./sessions/hooks.ts";
export type { RuntimeContext } from "./sessions/runtime-context.ts";
export { type Xray, type XrayOptions, type XraySession, xray } from "./sessions/xray.ts";
export type {
  Api,
  Change,
  ImageLimits,
  ImagePort,
  PreparedTranscript,
  PruningOptions,
  TranscriptMessage,
  TranscriptOptions,
  TranscriptPolicy,
} from "./transcript/contract.ts";
export type { ModelRef } from "./transcript/parse-model.ts";
export { prepareTranscript } from "./transcript/pipeline/prepare.ts";
export { type PolicyRequest, resolveTranscriptPolicy } from "./transcript/policy.ts";
export { prunedResults } from "./transcript/steps/prune-context.ts";
export type { TokensByPart } from "./transcript/tokens-by-part.ts";
