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
import type { AssistantMessage, ToolCallBlock, ToolResultMessage, Usage } from "../core/messages.ts";
import { textOf } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { MessageDraft } from "../core/seal.ts";
import { isRecord } from "../core/shape.ts";
import { withoutPathsOutside } from "../core/text.ts";
import type { Claim, HeldRun, Run, RunUsage } from "../runs/contract.ts";
import { RunStopped } from "../runs/worker.ts";
import { acpLink } from "./acp-link.ts";
import type { AgentProfile } from "./agents.ts";
import type { App } from "./app.ts";
import { invalidCallsType, pendingCalls } from "./append.ts";
import type { HookRegistry } from "./hooks.ts";
import { RoomMaker } from "./make-room.ts";
import { takeSteered } from "./run-input.ts";
import type { RunPlace } from "./run-place.ts";
import { canSeePaths, modelLimits } from "./run-place.ts";
import { Waiting } from "./run-waits.ts";
import type { RunWriter } from "./run-writer.ts";
import { PartialKeeper, tailOf } from "./run-writer.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { RequestAbout, TurnRequests } from "./turn-request.ts";
import type { StateModule } from "./with-state.ts";
import { ActiveTools, stateByKey } from "./with-state.ts";

export interface TurnParts {
  readonly place: RunPlace;
  readonly agent: AgentProfile;
  readonly claim: Claim;
  readonly writer: RunWriter;
  readonly signal: AbortSignal;
  readonly model: TurnModel;
  readonly system: string | null;
  readonly thinkingLevel: string;
  /** The tools are those of groups that are active at the moment. */
  readonly asked: RequestAbout & { readonly tools: readonly Tool[] };
  readonly state: readonly StateModule[];
  readonly requests: TurnRequests;
}

/** What a runtime is given of the session, the queue and the hooks. */
export async function turnPorts(app: App, parts: TurnParts): Promise<Turn> {
  const { place, agent, claim, writer, signal, model, system, thinkingLevel, asked, requests } = parts;
  const { run, held } = claim;
  const about = aboutOf(app, place, run);
  const told = { userId: about.userId, sessionKey: about.sessionKey, sessionId: about.sessionId };
  const partial = new PartialKeeper(app, held);
  const waiting = new Waiting(app, held, signal);
  const emit = (event: TurnEvent) => {
    partial.take(event);
    const type = eventTypes[event.type];
    app.bus.emit({
      ...bodyOf(event, model),
      type,
      at: app.clock.now(),
      ...told,
      runId: run.runId,
    } as SkeinEvent);
  };
  const room = new RoomMaker(app, place, {
    model,
    signal,
    writer,
    requests,
    used: (usage) => app.runs.charge(held, runUsage(usage)),
    retried: emit,
    told: (event) =>
      app.bus.emit({ type: "run.compaction", at: app.clock.now(), ...told, runId: run.runId, ...event }),
  });
  const seesImages = model.policy.images !== null;
  return {
    about,
    signal,
    model,
    system,
    get tools() {
      return asked.tools;
    },
    state: stateByKey(parts.state),
    thinkingLevel,
    limits: {
      maxSteps: agent.maxSteps,
      ...modelLimits(app.config),
      ...present({ maxOutputTokens: agent.maxOutputTokens }),
    },
    outputSchema: run.options.outputSchema ?? null,
    open: await openCallsOf(app, place),
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
      const { entries, refused } = await writer.say(
        message,
        started === null ? undefined : resultEntryId(started),
      );
      if (refused === null && started !== null) await app.runs.confirmReply(held, started);
      await partial.settle();
      return {
        entry: entries.findLast(({ type }) => type === "message") ?? null,
        refused,
        ...toldOf(entries),
      };
    },
    note: async (draft) => void (await writer.note(draft)),
    takeInput: () => takeSteered(app, place, writer, held, seesImages),
    check: async () => {
      signal.throwIfAborted();
      if (app.worker.isClosing) throw new RunStopped("closing");
      writer.check();
    },
    charge: (usage) => app.runs.charge(held, runUsage(usage)),
    makeRoom: (size, why) => room.make(size, why),
    approve: (call, asking) => approve(app, held, waiting, call, { signal, asking }),
    whileWaiting: (runIds, wait) => waiting.while("run", runIds, wait),
    ...(canSeePaths(app, place.session)
      ? {}
      : { hidePaths: (text: string) => withoutPathsOutside(about.cwd, text) }),
    hooks: turnHooks(app.hooks, place.ctx, asked),
    emit,
    ...present({ acp: acpLink(app, place, claim) }),
  };
}

/** A call may activate a group of tools for the steps after it. */
export function activeTools(
  tools: readonly Tool[],
  state: readonly StateModule[],
  agent: AgentProfile,
): readonly Tool[] {
  const active = state.find((module) => module instanceof ActiveTools);
  return active === undefined ? tools : tools.filter((tool) => active.offers(tool, agent.onDemand));
}

/** Whether the model was told of invalid calls behind its answer, and has to be asked again. */
function toldOf(entries: readonly Entry[]): Pick<Said, "hasOnlyInvalidCalls"> {
  const last = entries.at(-1);
  const isTold = last?.type === "custom_message" && last.customType === invalidCallsType;
  return isTold ? { hasOnlyInvalidCalls: true } : {};
}

/** The process that continues asks the model again: a partial answer is not sent to the model, but kept for people. */
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

/** An event of the loop as the bus has it. */
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

function aboutOf({ files }: App, { session }: RunPlace, { runId }: Run): TurnAbout {
  const { userId, agentId, key, sessionId, cwd } = session;
  const attachments = files.attachments(session);
  return { runId, userId, agentId, sessionKey: key, sessionId, cwd, attachments };
}

async function openCallsOf(app: App, place: RunPlace): Promise<Turn["open"]> {
  const { calls, entryId } = pendingCalls(await tailOf(app, place));
  return entryId === null || calls.length === 0 ? null : { entryId, calls };
}

function runUsage({ input, output, cacheRead, cacheWrite, totalTokens, cost }: Usage): RunUsage {
  const counted = { input, output, cacheRead, cacheWrite, totalTokens, costUsd: cost?.total };
  return Object.fromEntries(Object.entries(counted).filter(([, value]) => value !== undefined));
}

/** Asks people. The slot is free meanwhile; who does not answer in time has said no. */
async function approve(
  app: App,
  held: HeldRun,
  waiting: Waiting,
  { id, name, arguments: args }: ToolCallBlock,
  { signal, asking = signal }: { readonly signal: AbortSignal; readonly asking?: AbortSignal | undefined },
): Promise<{ readonly approved: boolean; readonly note: string }> {
  asking.throwIfAborted();
  // Asked again after a lost owner it is the same question, and has the time that it had.
  const { approvalId, expiresAt } = await app.runs.requestApproval(held, {
    toolCallId: id,
    toolName: name,
    arguments: args,
    expiresAt: app.clock.now() + app.config.approvals.timeoutSeconds * 1000,
  });
  const until = AbortSignal.any([signal, asking]);
  await waiting.while("approval", [], () => app.watcher.untilApproved(approvalId, expiresAt, until));
  signal.throwIfAborted();
  const answer = (await app.runs.resolveApproval(approvalId, "expired", null))?.answer ?? "expired";
  asking.throwIfAborted();
  const notes = {
    approved: "It was approved.",
    denied: "It was not approved: somebody said no.",
    expired: `It was not approved: nobody answered within ${app.config.approvals.timeoutSeconds} seconds.`,
  };
  return { approved: answer === "approved", note: notes[answer] };
}

/** The hooks of a turn, with what a run knows filled in. */
export function turnHooks(
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

/** What the yields at the end of a branch wait for; where one does not say, everything that the run started. */
export function yieldedFor(tail: readonly Entry[]): SleepRequest {
  const named = lastResults(tail)
    .filter(({ toolName, isError }) => toolName === "sessions_yield" && isError !== true)
    .map(({ details, content }) => idsIn(details) ?? idsIn(parseJson(textOf(content))));
  if (named.length === 0 || named.includes(null)) return {};
  return { waitFor: [...new Set(named.flatMap((ids) => ids ?? []))] };
}

/** The run that a tool call started and this message is the result of; `null`: there is none. */
export function runStartedBy(message: MessageDraft): string | null {
  if (message.role !== "toolResult" || !waitingTools.includes(message.toolName ?? "")) return null;
  const { runId } = fieldsOf(message.details) ?? fieldsOf(parseJson(textOf(message.content))) ?? {};
  return typeof runId === "string" ? runId : null;
}

const waitingTools = ["sessions_send", "sessions_spawn"];

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return isRecord(value) ? value : null;
}

/** Behind the last message that is no result. */
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
    return null; // no JSON: no result of ours
  }
}
