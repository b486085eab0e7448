import type {
  Said,
  SleepRequest,
  Tool,
  Turn,
  TurnAbout,
  TurnEvent,
  TurnHooks,
  TurnModel,
} from "../agents/contract.ts";
import type { Entry } from "../core/entries.ts";
import type { SkeinEvent } from "../core/events.ts";
import { resultEntryId } from "../core/hashed-id.ts";
import { isRecord } from "../core/is-record.ts";
import type { AssistantMessage, ToolCallBlock, ToolResultMessage, Usage } from "../core/messages.ts";
import { textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { MessageDraft } from "../core/seal.ts";
import { withoutPathsOutside } from "../core/text.ts";
import type { Claim, Run, RunUsage } from "../runs/contract.ts";
import { RunStopped } from "../runs/worker.ts";
import type { SessionRecord } from "../store/contract.ts";
import { acpLink } from "./acp-link.ts";
import type { AgentProfile } from "./agents.ts";
import type { App } from "./app.ts";
import { invalidCallsType, pendingCalls } from "./append.ts";
import type { HookRegistry } from "./hooks.ts";
import { RoomMaker } from "./make-room.ts";
import { takeSteered } from "./run-input.ts";
import { canSeePaths, modelLimits } from "./run-session.ts";
import { askApproval, Waiting } from "./run-waits.ts";
import type { RunWriter } from "./run-writer.ts";
import { PartialKeeper, tailOf } from "./run-writer.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { contextOfSession } from "./runtime-context.ts";
import { StreamPosition } from "./stream-position.ts";
import type { RequestSettings, TurnRequests } from "./turn-request.ts";
import type { StateModule } from "./with-state.ts";
import { ActiveTools, stateByKey } from "./with-state.ts";

interface TurnInput {
  readonly session: SessionRecord;

  readonly agent: AgentProfile;
  readonly claim: Claim;
  readonly writer: RunWriter;
  readonly signal: AbortSignal;
  readonly model: TurnModel;
  readonly system: string | null;
  readonly thinkingLevel: string;
  /** Contains only the tools in the currently active groups. */
  readonly settings: RequestSettings & { readonly tools: readonly Tool[] };
  readonly state: readonly StateModule[];
  readonly requests: TurnRequests;
}

/** Connects a runtime to the session, the queue and the hooks. */
export async function turnPorts(app: App, input: TurnInput): Promise<Turn> {
  const { session, agent, claim, writer, signal, model, system, thinkingLevel, settings, requests } = input;
  const { run, held } = claim;
  const ctx = contextOfSession(app.store, session, run);
  const about = aboutOf(app, session, run);
  const { userId, sessionKey, sessionId } = about;
  const { runId } = run;
  const partial = new PartialKeeper(app, held);
  const position = new StreamPosition();
  const waiting = new Waiting(app, held, signal);
  const emit = (event: TurnEvent) => {
    partial.take(event);
    const type = eventTypes[event.type];
    const at = app.clock.now();
    const turn = app.turns.get(session.uid);
    if (turn !== undefined) turn.retryAt = event.type === "retry" ? at + event.delayMs : null;
    const body = { ...bodyOf(event, model), ...position.take(event) };
    app.bus.emit({ ...body, type, at, userId, sessionKey, sessionId, runId } as SkeinEvent);
  };
  const charge = (usage: Usage) => app.runs.charge(held, runUsage(usage));
  const room = new RoomMaker(app, session, {
    model,
    signal,
    writer,
    requests,
    ctx,
    charge,
    reportRetry: emit,
    report: (event) => {
      const at = app.clock.now();
      app.bus.emit({ type: "run.compaction", at, userId, sessionKey, sessionId, runId, ...event });
    },
  });
  const seesImages = model.policy.images !== null;
  return {
    about,
    signal,
    model,
    system,
    get tools() {
      return settings.tools;
    },
    state: stateByKey(input.state),
    thinkingLevel,
    limits: {
      maxSteps: agent.maxSteps,
      ...modelLimits(app.config),
      ...present({ maxOutputTokens: agent.maxOutputTokens }),
    },
    outputSchema: run.options.outputSchema ?? null,
    open: await openCallsOf(app, session),
    request: ({ isSealedThinkingRejected = false } = {}) => {
      if (isSealedThinkingRejected) requests.isSealedThinkingRejected = true;
      return requests.next();
    },
    say: async (message) => {
      if (isLeftBehind(message, signal, app.worker)) {
        await partial.leave();
        return { entry: null, refused: null };
      }
      const started = runStartedBy(message);
      const id = started === null ? undefined : resultEntryId(started);
      const { entries, refused } = await writer.say(withRequestTokens(message, requests), id);
      if (refused === null && started !== null) await app.runs.confirmReply(held, started);
      await partial.settle();
      if (message.role === "assistant") position.startAnswer();
      return {
        entry: entries.findLast(({ type }) => type === "message") ?? null,
        refused,
        ...invalidCallsOf(entries),
      };
    },
    note: async (draft) => void (await writer.note(draft)),
    takeInput: () => takeSteered(app, session, writer, held, seesImages),
    check: async () => {
      signal.throwIfAborted();
      if (app.worker.isClosing) throw new RunStopped("closing");
      await writer.check();
    },
    charge,
    makeRoom: (size, why) => room.make(size, why),
    approve: (call, options) => askApproval(app, held, waiting, call, signal, options),
    whileWaiting: (runIds, wait) => waiting.while("run", runIds, wait),
    ...(canSeePaths(app, session)
      ? {}
      : { hidePaths: (text: string) => withoutPathsOutside(about.cwd, text) }),
    hooks: turnHooks(app.hooks, ctx, settings),
    emit,
    ...present({ acp: acpLink(app, session, claim) }),
  };
}

/** Returns the currently active tools. A call can activate a group for later steps. */
export function activeTools(
  tools: readonly Tool[],
  state: readonly StateModule[],
  agent: AgentProfile,
): readonly Tool[] {
  const active = state.find((module) => module instanceof ActiveTools);
  return active === undefined ? tools : tools.filter((tool) => active.offers(tool, agent.onDemand));
}

/** Stores the estimate for an answer's request next to the provider's count, so that later requests can be compared. */
function withRequestTokens(message: MessageDraft, { requestTokens }: TurnRequests): MessageDraft {
  if (message.role !== "assistant" || requestTokens === null) return message;
  return { ...message, skein: { ...message.skein, requestTokens } };
}

/** Whether the answer is followed by a note about invalid calls. If so, the model must be called again. */
function invalidCallsOf(entries: readonly Entry[]): Pick<Said, "hasOnlyInvalidCalls"> {
  const last = entries.at(-1);
  const hasNote = last?.type === "custom_message" && last.customType === invalidCallsType;
  return hasNote ? { hasOnlyInvalidCalls: true } : {};
}

/** Whether a partial answer was left for the process that continues the run. That process calls the model again. */
function isLeftBehind(
  message: MessageDraft,
  { aborted, reason }: AbortSignal,
  { isClosing }: App["worker"],
): boolean {
  if (message.role !== "assistant" || message.stopReason !== "aborted") return false;
  if (!aborted) return isClosing;
  return reason instanceof RunStopped && (reason.why === "closing" || reason.why === "lost");
}

const eventTypes = {
  delta: "run.delta",
  tool_call: "run.tool",
  tool_result: "run.tool",
  retry: "run.retry",
  step: "run.step",
} as const;

/** Converts a loop event to a bus event. */
function bodyOf(event: TurnEvent, { provider, model }: TurnModel): Record<string, unknown> {
  const { type: _, ...body } = event;
  switch (event.type) {
    case "tool_call": {
      const { id, name, arguments: args } = event.call;
      return { phase: "call", toolCallId: id, toolName: name, arguments: args };
    }
    case "tool_result": {
      const { isError, content, durationMs } = event;
      const { id, name } = event.call;
      return { phase: "result", toolCallId: id, toolName: name, isError, content, durationMs };
    }
    case "step":
      return { provider, model, ...body };
    default:
      return body;
  }
}

function aboutOf({ files }: App, session: SessionRecord, { runId }: Run): TurnAbout {
  const { userId, agentId, key, sessionId, cwd } = session;
  const attachments = files.attachments(session);
  return { runId, userId, agentId, sessionKey: key, sessionId, cwd, attachments };
}

async function openCallsOf(app: App, session: SessionRecord): Promise<Turn["open"]> {
  const { calls, entryId } = pendingCalls(await tailOf(app, session));
  return entryId === null || calls.length === 0 ? null : { entryId, calls };
}

function runUsage({ input, output, cacheRead, cacheWrite, totalTokens, cost }: Usage): RunUsage {
  const counted = { input, output, cacheRead, cacheWrite, totalTokens, costUsd: cost?.total };
  return Object.fromEntries(Object.entries(counted).filter(([, value]) => value !== undefined));
}

/** Returns a turn's hooks, bound to its run's context. */
function turnHooks(
  hooks: HookRegistry,
  ctx: RuntimeContext,
  about: { readonly model: TurnModel; readonly system: string | null; readonly tools: readonly Tool[] },
): TurnHooks {
  const { provider, api, model } = about.model.policy;
  const asked = { provider, api, model, ctx };
  return {
    beforeToolCall: (call) => hooks.ask("before_tool_call", { ...called(call), ctx }),
    afterToolCall: (call, result, durationMs) =>
      hooks.notify("after_tool_call", {
        ...called(call),
        result: result as ToolResultMessage,
        durationMs,
        ctx,
      }),
    llmInput: (messages) => {
      const tools = about.tools.map(({ name }) => name);
      return hooks.notify("llm_input", { ...asked, system: about.system, messages, tools });
    },
    llmOutput: (message) => hooks.notify("llm_output", { ...asked, message: message as AssistantMessage }),
  };
}

function called({ id, name, arguments: args }: ToolCallBlock) {
  return { toolCallId: id, toolName: name, arguments: args };
}

/**
 * Returns the runs that the yields at the end of a branch are waiting for. A yield that names no runs waits for
 * everything that the run started.
 */
export function yieldedFor(tail: readonly Entry[]): SleepRequest {
  const named = lastResults(tail)
    .filter(({ toolName, isError }) => toolName === "sessions_yield" && isError !== true)
    .map(({ details, content }) => idsIn(details) ?? idsIn(parseJson(textOf(content))));
  if (named.length === 0 || named.includes(null)) return {};
  return { waitFor: [...new Set(named.flatMap((ids) => ids ?? []))] };
}

/** Returns the run that a tool call started, according to the call's result, or `null` if it started none. */
function runStartedBy(message: MessageDraft): string | null {
  if (message.role !== "toolResult" || !waitingTools.includes(message.toolName ?? "")) return null;
  const { runId } = fieldsOf(message.details) ?? fieldsOf(parseJson(textOf(message.content))) ?? {};
  return typeof runId === "string" ? runId : null;
}

const waitingTools = ["sessions_send", "sessions_spawn"];

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return isRecord(value) ? value : null;
}

/** Returns the tool results after the last message of any other kind. */
function lastResults(tail: readonly Entry[]): readonly ToolResultMessage[] {
  const said = tail.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
  const begin = said.findLastIndex(({ role }) => role !== "toolResult");
  return said.slice(begin + 1).filter((message) => message.role === "toolResult");
}

function idsIn(value: unknown): readonly string[] | null {
  if (!isRecord(value) || !Array.isArray(value.waitingFor)) return null;
  return value.waitingFor.every((id) => typeof id === "string") ? value.waitingFor : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // The text is not JSON, so it is not a session tool's result.
  }
}
