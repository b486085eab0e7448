import type { Clock } from "../core/clock.ts";
import { SkeinError } from "../core/errors.ts";
import { hashedId } from "../core/hashed-id.ts";
import type { IdSource } from "../core/ids.ts";
import { stringifyJson } from "../core/json.ts";
import type { ToolResultMessage } from "../core/messages.ts";
import { cutText, thrownText } from "../core/text.ts";
import type { FileBoundary } from "../file-access/file-boundary.ts";
import type { Tool, ToolCallContext, ToolOutput } from "../runtimes/contract.ts";
import { unlessAborted } from "../runtimes/loop/waits.ts";
import type { HookRegistry } from "../sessions/hooks.ts";
import { findFor, noSuchAgent } from "../sessions/input/accept-input.ts";
import type { ContextDefaults, RuntimeContext } from "../sessions/runtime-context.ts";
import { resolveRuntimeContext } from "../sessions/runtime-context.ts";
import type { ToolCalled, ToolCallOptions, ToolInvoked } from "../sessions/skein/skein.ts";
import { withWorkingDirectory } from "../sessions/working-directory.ts";
import type { SessionRecord, Store } from "../store/contract.ts";
import { noSuchSession } from "../store/refusals.ts";
import type { Agents } from "./agents.ts";
import type { RunTools } from "./run-tools.ts";

export interface InvokeParts {
  readonly store: Store;
  readonly files: FileBoundary;
  readonly agents: Agents;
  readonly defaults: ContextDefaults;
  readonly tools: Pick<RunTools, "of">;
  readonly hooks: Pick<HookRegistry, "ask" | "notify">;
  readonly clock: Clock;
  readonly newId: IdSource;
  /** The session tools among those that runs are offered. */
  sessionTools(): Promise<readonly Tool[]>;
  callSessionTool(name: string, args: unknown, options: ToolCallOptions): Promise<ToolCalled>;
}

type Arguments = Readonly<Record<string, unknown>>;

interface Call {
  readonly id: string;
  readonly tool: Tool;
  /** A session tool. */
  readonly isOurs: boolean;
  /** `null`: it is not there yet. */
  readonly session: SessionRecord | null;
  readonly context: RuntimeContext;
  readonly options: Pick<ToolCallOptions, "idempotencyKey" | "signal">;
}

const longestError = 8000;

/**
 * Calls a tool as an agent in that session would: of those that it is offered there, past the same hooks. Outside of a run nobody
 * can be asked for an approval, so what needs one is refused. What goes wrong with the call is a result. A session that is not
 * there yet has the session tools alone, of which those that set something off make it.
 */
export async function invokeTool(
  parts: InvokeParts,
  name: string,
  args: Arguments,
  { idempotencyKey, signal, ...given }: ToolCallOptions,
): Promise<ToolInvoked> {
  const { store, agents, defaults, tools, newId } = parts;
  const resolved = resolveRuntimeContext(given, defaults);
  const found = await findFor(store, resolved);
  const session = found === null ? null : await withWorkingDirectory(parts, found);
  const { agentId } = session ?? resolved;
  const agent = agents.find(agentId);
  const ours = await parts.sessionTools();
  const offered = agent === null ? ours : await tools.of(agent, null, session ?? { meta: {} });
  const tool = offered.find((each) => each.name === name);
  if (tool === undefined) throw agent === null ? noSuchAgent(agentId) : noSuchTool(name, offered);
  // One that is asked about by a rule is the same tool in another frame.
  const isOurs = ours.some(({ execute }) => execute === tool.execute);
  if (session === null && !isOurs) noSuchSession(resolved.sessionKey);
  const asker = session?.uid ?? resolved.sessionKey;
  const id = idempotencyKey === undefined ? newId() : hashedId("call", asker, name, idempotencyKey);
  const context = session === null ? given : contextOf(session);
  const options = {
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(signal === undefined ? {} : { signal }),
  };
  return hooked(parts, { id, tool, isOurs, session, context, options }, args);
}

async function hooked(parts: InvokeParts, call: Call, args: Arguments): Promise<ToolInvoked> {
  const { hooks, clock } = parts;
  const { id: toolCallId, context: ctx, tool, session, isOurs } = call;
  const about = { toolCallId, toolName: tool.name, ctx };
  const began = clock.now();
  let made = args;
  const attempt = async () => {
    const asked = await hooks.ask("before_tool_call", { ...about, arguments: args });
    made = asked.arguments;
    if (asked.block !== null) return refused("forbidden", `This call was blocked: ${asked.block}`);
    if (isOurs && (await tool.needsApproval(made))) return unasked(tool);
    return session === null || isOurs ? ofSession(parts, call, made) : ofAgent(parts, call, session, made);
  };
  const invoked = await attempt().catch((error: unknown) => {
    call.options.signal?.throwIfAborted();
    // A session tool refuses by its result; what it throws is about who calls it.
    if (error instanceof SkeinError && (isOurs || error.code === "fenced")) throw error;
    return shown({
      content: [{ type: "text", text: cutText(thrownText(error), longestError) }],
      isError: true,
    });
  });
  const { isError, result } = invoked;
  const content = "content" in result ? result.content : [{ type: "text", text: stringifyJson(result) }];
  const told = { role: "toolResult", toolCallId, toolName: tool.name, content, isError } as ToolResultMessage;
  const durationMs = clock.now() - began;
  await hooks.notify("after_tool_call", { ...about, arguments: made, result: told, durationMs });
  return invoked;
}

async function ofSession(parts: InvokeParts, call: Call, args: Arguments): Promise<ToolInvoked> {
  const { tool, context, options } = call;
  const called = await parts.callSessionTool(tool.name, args, { ...context, ...options });
  const { isRefusal } = await import("../tools/refusal.ts");
  return { ...called, isError: isRefusal(called.result) };
}

async function ofAgent(
  { files }: InvokeParts,
  { id, tool, options }: Call,
  session: SessionRecord,
  args: Arguments,
): Promise<ToolInvoked> {
  const checked = await tool.check(args);
  if ("problem" in checked)
    return refused("invalid_arguments", `The arguments of ${tool.name} do not fit: ${checked.problem}`);
  if (await tool.needsApproval(args)) return unasked(tool);
  const { userId, agentId, key: sessionKey, sessionId, cwd } = session;
  // There is no run: what a tool would know of one is the call itself.
  const attachments = files.attachments(session);
  const about = { runId: id, userId, agentId, sessionKey, sessionId, cwd, attachments };
  const { signal = new AbortController().signal } = options;
  const around: ToolCallContext = {
    about,
    toolCallId: id,
    entryId: id,
    signal,
    whileWaiting: async (_, wait) => ({ entered: true, value: await wait() }),
  };
  // One that never returns is left behind when nobody waits for it any more.
  return shown(await unlessAborted(tool.execute(checked.args, around), signal));
}

function contextOf({ userId, agentId, key: sessionKey, sessionId }: SessionRecord): RuntimeContext {
  return { userId, agentId, sessionKey, sessionId };
}

function shown({ content, isError = false }: ToolOutput): ToolInvoked {
  return { result: { content }, isError, rootId: null };
}

function unasked({ name }: Tool): ToolInvoked {
  const why = `A call of ${name} needs a person's approval, and only a run can ask for it.`;
  return refused("forbidden", `${why} Have the agent call it in a turn.`);
}

function refused(code: "forbidden" | "invalid_arguments", error: string): ToolInvoked {
  const status = code === "forbidden" ? "forbidden" : "error";
  return { result: { status, code, error }, isError: true, rootId: null };
}

function noSuchTool(name: string, offered: readonly Tool[]): SkeinError {
  const names = offered.map((tool) => tool.name).join(", ");
  const advice = names === "" ? "In this session there are none" : `In this session there are ${names}`;
  return new SkeinError("not_found", { what: "Tool", name, advice });
}
