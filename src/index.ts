import "./check-node.ts";

export type { AccessAction } from "./access/visibility/access-policy.ts";
export type { AccessExplanation, AccessStep } from "./access/visibility/decide-access.ts";
export type { EmbeddingModel, LanguageModel } from "./agents/contract.ts";
export type { AgentState } from "./agents/tools/define-agent.ts";
export {
  type AgentDefinition,
  type AgentSpec,
  defineAgent,
  type SubagentSpec,
} from "./agents/tools/define-agent.ts";
export type { ArgumentsOf, StandardSchema, ToolParameters } from "./agents/tools/define-tool.ts";
export {
  defineTool,
  type ToolContext,
  type ToolDefinition,
  type ToolSpec,
  type ToolState,
} from "./agents/tools/define-tool.ts";
export type { SkeinOptions } from "./app.ts";
export type { Channel, InboundMessage, OutboundMessage, Receipt } from "./channels/contract.ts";
export type { ConfigInput } from "./config/sections/all.ts";
export type { Clock } from "./core/clock.ts";
export {
  buildContext,
  type ContextMessage,
  type ContextOptions,
  type SessionContext,
} from "./core/context.ts";
export type { Diagnostic } from "./core/diagnostics.ts";
export { type CorruptLine, type Entry, isCorrupt, type SessionHeader } from "./core/entries.ts";
export { type ErrorCode, HookStop, SkeinError } from "./core/errors.ts";
export type { SkeinEvent } from "./core/events.ts";
export type { IdSource } from "./core/ids.ts";
export { formatKey, type ParsedKey, parseKey, type SessionKind } from "./core/keys.ts";
export type { Message } from "./core/messages.ts";
export { parseAgentId, parseSessionId } from "./core/names.ts";
export { type ParsedSession, parseSession } from "./core/parse-session.ts";
export type { Plan, PlannedItem } from "./core/plan.ts";
export { type Asker, displayKey, type Lookup, resolveReference } from "./core/references.ts";
export type { EntryDraft, MessageDraft } from "./core/seal.ts";
export type { ThinkingLevel } from "./core/thinking-levels.ts";
export { SessionTree, type TreeAppendOptions, type TreeOptions } from "./core/tree.ts";
export { createSkein } from "./create-skein.ts";
export { continueRecent, listSessionFiles, openSession } from "./open-session.ts";
export type { SessionToolResults } from "./protocol/tool-results.ts";
export type {
  Approval,
  BudgetFigures,
  DeliveryTarget,
  OutboxRow,
  Run,
  RunQuery,
  RunState,
  RunUsage,
} from "./runs/run.ts";
export type {
  MountedGateway,
  MountOptions,
  ToolCalled,
  ToolCallOptions,
  ToolListing,
} from "./sessions/app.ts";
export type { Hook, HookName, Hooks } from "./sessions/hook-events.ts";
export { HookRegistry } from "./sessions/hooks.ts";
export type { RuntimeContext } from "./sessions/runtime-context.ts";
export type { LastScheduledRun, ScheduleInfo, ScheduleService } from "./sessions/schedules.ts";
export type { ApprovalService, RunService, SessionService } from "./sessions/services.ts";
export type {
  AppendedMessages,
  MessageOrigin,
  ModelMessageLike,
  SendOptions,
  SessionHandle,
} from "./sessions/session-handle.ts";
export type { ShowRequestOptions } from "./sessions/show-request.ts";
export type { Skein } from "./sessions/skein.ts";
export type { Turn, TurnEvent, TurnResult } from "./sessions/turn-handle.ts";
export { RunError } from "./sessions/turn-handle.ts";
export { type SessionXray, type Xray, type XrayOptions, type XraySession, xray } from "./sessions/xray.ts";
export type { LoneSession, OpenSessionOptions, SessionFile } from "./store/files/lone-session.ts";
export { sessionTools } from "./tools/session-tools.ts";
export type { ForeignTool } from "./tools/tool-adapters.ts";
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
export type { TokensByPart } from "./transcript/estimate-tokens.ts";
export type { ModelRef } from "./transcript/model-table.ts";
export { type PolicyRequest, resolveTranscriptPolicy } from "./transcript/policy.ts";
export { prepareTranscript } from "./transcript/steps/prepare-transcript.ts";
export { prunedResults } from "./transcript/steps/prune-context.ts";
