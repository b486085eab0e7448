import type { Tool, ToolCallContext } from "../agents/contract.ts";
import type { CallPolicy } from "../agents/loop/call-tool.ts";
import { callUnderPolicy, hideInErrors } from "../agents/loop/call-tool.ts";
import { unlessAborted } from "../core/concurrency.ts";
import { messageWithoutPaths, SkeinError } from "../core/errors.ts";
import { hashedId } from "../core/hashed-id.ts";
import { isRecord } from "../core/is-record.ts";
import { stringifyJson } from "../core/json.ts";
import type { ToolCallBlock, ToolResultMessage } from "../core/messages.ts";
import { present } from "../core/present.ts";
import { cutText, thrownText, withoutPathsOutside } from "../core/text.ts";
import { findFor, noSuchAgent } from "../sessions/accept.ts";
import type { App, ToolCalled, ToolCallOptions, ToolInvoked } from "../sessions/app.ts";
import { resolveSessionTarget } from "../sessions/resolve-context.ts";
import { withWorkingDirectory } from "../sessions/run-session.ts";
import type { RuntimeContext } from "../sessions/runtime-context.ts";
import { isSandboxed } from "../sessions/session-access.ts";
import type { StateModule } from "../sessions/with-state.ts";
import { ActiveTools, stateByKey, withState } from "../sessions/with-state.ts";
import type { SessionRecord } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import { contextIn } from "../store/spaces.ts";

/** The app, plus the session tools that it offers to runs. */
export interface InvokeApp extends App {
  offeredSessionTools(): Promise<readonly Tool[]>;
  callSessionTool(name: string, args: unknown, options: ToolCallOptions): Promise<ToolCalled>;
}

type Arguments = Readonly<Record<string, unknown>>;

/** The session on whose behalf a call is made, and the agent whose rules apply. */
interface CallPlace {
  readonly agentId: string;
  readonly sessionKey: string;
  /** `null` if the session does not exist yet. */
  readonly session: SessionRecord | null;
}

interface OutsideCall extends CallPlace {
  readonly id: string;
  readonly tool: Tool;
  readonly isSessionTool: boolean;
  readonly context: RuntimeContext;
  readonly options: ToolCallOptions;
  readonly state: ToolCallContext["state"];
}

const longestError = 8000;

/**
 * Calls a tool as an agent in that session would, under the same rules and hooks. No approval can be requested outside
 * a run, so a call that needs one is rejected. A rejected or failed call is returned as a result. A session that does
 * not exist yet has only the session tools. A tool that starts a run creates the session.
 */
export async function invokeTool(
  app: InvokeApp,
  name: string,
  args: Arguments,
  options: ToolCallOptions,
): Promise<ToolInvoked> {
  const place = await placeOf(app, options);
  const agent = app.agents.find(place.agentId);
  const session = place.session ?? { meta: {} };
  const own = agent?.definition?.tools?.some((tool) => tool.name === name) ?? false;
  const sessionTool = own ? undefined : (await app.offeredSessionTools()).find((tool) => tool.name === name);
  if (sessionTool !== undefined) return callSessionTool(app, place, sessionTool, args, options);
  if (agent === null) throw noSuchAgent(place.agentId);
  const offered = await app.tools.of(agent, null, session);
  const tool = offered.find((each) => each.name === name);
  if (tool === undefined) {
    const denied = await app.tools.denial(agent, session, name);
    if (denied === null) throw noSuchTool(name, offered);
    return refuseDenied(name, denied);
  }
  const { session: found, sessionKey } = place;
  if (found === null) return noSuchSession(sessionKey);
  const scope = { agentId: found.agentId, ...present({ userId: found.userId }) };
  const work = async (modules: readonly StateModule[]) => {
    const active = modules.find((module) => module instanceof ActiveTools);
    if (active?.offers(tool, agent.onDemand) === false)
      return refused("forbidden", `The tool ${name} cannot be called here, because its group is not active.`);
    const call = callOf(app, place, tool, false, options);
    return perform(app, { ...call, state: stateByKey(modules) }, args);
  };
  const done = `The tool ${name} ran`;
  return withState(app.store.state, scope, found.sessionId, agent.state(), work, { done });
}

/**
 * Like `invokeTool`, but only for session tools, regardless of which tools the agent has. Throws if `name` is not a
 * session tool.
 */
export async function callTool(
  app: InvokeApp,
  name: string,
  given: unknown,
  options: ToolCallOptions,
): Promise<ToolCalled> {
  const args = given ?? {};
  const tool = (await app.offeredSessionTools()).find((each) => each.name === name);
  // The call reports what is wrong with the name or the arguments.
  if (tool === undefined || !isRecord(args)) return app.callSessionTool(name, args, options);
  const place = await placeOf(app, options);
  const { result, rootId } = await callSessionTool(app, place, tool, args, options);
  return { result, rootId };
}

/** Returns the names of the session tools that a session's rules allow. */
export async function allowedSessionTools(
  app: InvokeApp,
  context: RuntimeContext,
): Promise<ReadonlySet<string>> {
  const { agentId, session } = await placeOf(app, context);
  const agent = app.agents.describe(agentId);
  const allowed = (await app.offeredSessionTools()).filter(
    (tool) => !("denied" in app.tools.rule(agent, session ?? { meta: {} }, tool)),
  );
  return new Set(allowed.map(({ name }) => name));
}

async function placeOf(app: InvokeApp, given: RuntimeContext): Promise<CallPlace> {
  const resolved = resolveSessionTarget(app, given);
  const found = await findFor(app.store, resolved);
  const session = found === null ? null : await withWorkingDirectory(app, found);
  const { agentId } = session ?? resolved;
  return { agentId, sessionKey: resolved.key, session };
}

async function callSessionTool(
  app: InvokeApp,
  place: CallPlace,
  tool: Tool,
  args: Arguments,
  options: ToolCallOptions,
): Promise<ToolInvoked> {
  const agent = app.agents.describe(place.agentId);
  const ruled = app.tools.rule(agent, place.session ?? { meta: {} }, tool);
  if ("denied" in ruled) return refuseDenied(tool.name, ruled.denied);
  return perform(app, callOf(app, place, ruled, true, options), args);
}

function callOf(
  app: InvokeApp,
  place: CallPlace,
  tool: Tool,
  isSessionTool: boolean,
  options: ToolCallOptions,
): OutsideCall {
  const { idempotencyKey, signal: _, onWait: _onWait, runId: _runId, ...given } = options;
  const { session, sessionKey } = place;
  const asker = session?.uid ?? sessionKey;
  const id = idempotencyKey === undefined ? app.newId() : hashedId("call", asker, tool.name, idempotencyKey);
  const context = session === null ? given : contextOf(app, session);
  return { ...place, id, tool, isSessionTool, context, options, state: {} };
}

async function perform(app: InvokeApp, call: OutsideCall, args: Arguments): Promise<ToolInvoked> {
  const { hooks, clock } = app;
  const { id, context: ctx, tool } = call;
  const began = clock.now();
  let made: ToolCallBlock = { type: "toolCall", id, name: tool.name, arguments: { ...args } };
  const about = { toolCallId: id, toolName: tool.name, ctx };
  const policy: CallPolicy = {
    signal: call.options.signal ?? new AbortController().signal,
    approve: async () => ({ approved: false, note: onlyInRuns(tool) }),
    hooks: {
      beforeToolCall: (block) => hooks.ask("before_tool_call", { ...about, arguments: block.arguments }),
    },
  };
  const invoked = await callUnderPolicy(policy, tool, made, (checked, block) => {
    made = block;
    return execute(app, call, checked, policy.signal);
  }).then(
    (answer) => {
      made = answer.call;
      return "refusal" in answer ? refused(answer.refusal.code, answer.refusal.error) : answer.output;
    },
    (error: unknown) => failed(app, call, error),
  );
  const { isError, result } = invoked;
  const content = "content" in result ? result.content : [{ type: "text", text: stringifyJson(result) }];
  const message = {
    role: "toolResult",
    toolCallId: id,
    toolName: tool.name,
    content,
    isError,
  } as ToolResultMessage;
  const durationMs = clock.now() - began;
  await hooks.notify("after_tool_call", { ...about, arguments: made.arguments, result: message, durationMs });
  return invoked;
}

async function execute(
  app: InvokeApp,
  call: OutsideCall,
  args: unknown,
  signal: AbortSignal,
): Promise<ToolInvoked> {
  const { id, tool, session, options } = call;
  if (call.isSessionTool || session === null) {
    const called = await app.callSessionTool(tool.name, args, { ...options, ...call.context });
    const { isRefusal } = await import("../tools/session-tool.ts");
    return { ...called, isError: isRefusal(called.result) };
  }
  const { userId, agentId, key: sessionKey, sessionId, cwd } = session;
  // There is no run, so the call's own ID is used instead of a run ID.
  const about = { runId: id, userId, agentId, sessionKey, sessionId, cwd };
  const around: ToolCallContext = {
    about: { ...about, attachments: app.files.attachments(session) },
    toolCallId: id,
    entryId: id,
    signal,
    state: call.state,
    whileWaiting: async (_, wait) => ({ entered: true, value: await wait() }),
  };
  // A tool that never returns is abandoned when its caller disconnects.
  return shown(app, call, await unlessAborted(tool.execute(args, around), signal));
}

function failed(app: InvokeApp, call: OutsideCall, error: unknown): ToolInvoked {
  call.options.signal?.throwIfAborted();
  // A session tool rejects a call by returning a result. An error that it throws is meant for its caller.
  if (error instanceof SkeinError && (call.isSessionTool || error.code === "fenced")) throw error;
  const text = error instanceof SkeinError ? messageWithoutPaths(error) : thrownText(error);
  return shown(app, call, {
    content: [{ type: "text", text: cutText(text, longestError) }],
    isError: true,
  });
}

/** Hides the locations of files on this machine from sandboxed sessions and from the sessions of named users. */
function shown(
  app: InvokeApp,
  { session }: OutsideCall,
  output: Parameters<typeof hideInErrors>[0],
): ToolInvoked {
  const isHidden = session !== null && (session.userId !== null || isSandboxed(app, session));
  const hide = (text: string) => withoutPathsOutside(session?.cwd ?? null, text);
  const { content, isError = false } = isHidden ? hideInErrors(output, hide) : output;
  return { result: { content }, isError, rootId: null };
}

function contextOf(
  { store }: InvokeApp,
  { userId, agentId, key: sessionKey, sessionId }: SessionRecord,
): RuntimeContext {
  return { ...contextIn(store, userId), agentId, sessionKey, sessionId };
}

function onlyInRuns({ name }: Tool): string {
  const why = `A call to ${name} needs a person's approval, which only a run can request.`;
  return `${why} Let the agent call it during a turn.`;
}

function refuseDenied(name: string, denied: string): ToolInvoked {
  const error = `The tool ${name} cannot be called here: ${denied}.`;
  return refused("forbidden", `${error} To allow it, change tools.allow or tools.deny.`);
}

function refused(code: "forbidden" | "invalid_arguments", error: string): ToolInvoked {
  const status = code === "forbidden" ? "forbidden" : "error";
  return { result: { status, code, error }, isError: true, rootId: null };
}

function noSuchTool(name: string, offered: readonly Tool[]): SkeinError {
  const names = offered.map((tool) => tool.name).join(", ");
  const advice = names === "" ? "This session has no tools" : `This session has the tools ${names}`;
  return new SkeinError("not_found", { what: "Tool", name, advice });
}
