import { messageWithoutPaths, SkeinError } from "../../core/errors.ts";
import type { ToolCallBlock } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { cutText, thrownText } from "../../core/text.ts";
import type { SleepRequest, Tool, ToolCallContext, ToolOutput, Turn } from "../contract.ts";
import { callUnderPolicy } from "./call-under-policy.ts";
import type { LoopDeps } from "./waits.ts";
import { unlessAborted } from "./waits.ts";

export type ResultDraft = Extract<MessageDraft, { role: "toolResult" }>;

/** A call and what came of it. */
export interface ToolAnswer {
  readonly result: ResultDraft;
  readonly sleep: SleepRequest | null;
}

/** The message that made the call, and whether the call may have been done before. */
export interface CallOrigin {
  readonly entryId: string;
  readonly isReplay: boolean;
}

const longestError = 8000;

/**
 * Does one call. Whatever goes wrong with the call is a failed result, in words that the model can act on; only what ends
 * the run throws: an abort, a check that fails, a write under a lost fence.
 */
export async function callTool(
  turn: Turn,
  call: ToolCallBlock,
  origin: CallOrigin,
  deps: LoopDeps,
): Promise<ToolAnswer> {
  await turn.check();
  turn.signal.throwIfAborted();
  turn.emit({ type: "tool_call", call });
  const began = deps.clock.now();
  const { output, call: made } = await attempt(turn, call, origin).catch((error: unknown) => {
    turn.signal.throwIfAborted();
    if (error instanceof SkeinError && error.code === "fenced") throw error;
    const text = error instanceof SkeinError ? messageWithoutPaths(error) : thrownText(error);
    return { output: failed(cutText(text, longestError)), call };
  });
  const result = resultOf(call, turn.hidePaths === undefined ? output : hideInErrors(output, turn.hidePaths));
  const durationMs = deps.clock.now() - began;
  await turn.hooks.afterToolCall(made, result, durationMs);
  const { isError, content } = result;
  turn.emit({ type: "tool_result", call: made, isError, content, durationMs });
  return { result, sleep: isError ? null : (output.sleep ?? null) };
}

interface Attempt {
  readonly output: ToolOutput;
  /** With the arguments that it was made with. */
  readonly call: ToolCallBlock;
}

async function attempt(turn: Turn, call: ToolCallBlock, origin: CallOrigin): Promise<Attempt> {
  const tool = turn.tools.find(({ name }) => name === call.name);
  const refusal = refusalOf(turn, call, tool, origin);
  if (refusal !== null || tool === undefined) return { output: failed(refusal ?? ""), call };
  const { signal, hooks } = turn;
  const approve = async (made: ToolCallBlock) => {
    const answer = await turn.approve(made);
    // A person may have taken a while to answer.
    await turn.check();
    return answer;
  };
  const answer = await callUnderPolicy({ signal, hooks, approve }, tool, call, (args, made) =>
    execute(turn, tool, args, made, origin.entryId),
  );
  if ("refusal" in answer) return { output: failed(answer.refusal.error), call: answer.call };
  return answer;
}

/** Why a call is not even tried; `null`: it is. */
function refusalOf(
  turn: Turn,
  call: ToolCallBlock,
  tool: Tool | undefined,
  { isReplay }: CallOrigin,
): string | null {
  if (call.skein?.invalidInput === true) {
    const written = cutText(String(call.arguments.input), 200);
    return `The arguments are not a JSON object: ${written}\nCall ${call.name} again with an object that fits its schema.`;
  }
  if (isReplay && tool?.replay !== "safe") {
    return "The run was interrupted while this call was under way. It is not known whether it was done: look before you call it again.";
  }
  if (tool !== undefined) return null;
  const names = turn.tools.map(({ name }) => name).join(", ");
  return `There is no tool "${call.name}". ${names === "" ? "There are no tools." : `The tools are: ${names}.`}`;
}

/** A tool that never returns is left behind when the turn ends. */
function execute(
  turn: Turn,
  tool: Tool,
  args: unknown,
  call: ToolCallBlock,
  entryId: string,
): Promise<ToolOutput> {
  const { about, signal, state } = turn;
  const whileWaiting = turn.whileWaiting?.bind(turn) ?? keepingTheSlot;
  const context = { about, toolCallId: call.id, entryId, signal, state, whileWaiting };
  return unlessAborted(
    Promise.resolve().then(() => tool.execute(args, context)),
    signal,
  );
}

const keepingTheSlot: ToolCallContext["whileWaiting"] = async (_, wait) => ({
  entered: true,
  value: await wait(),
});

/** The output of a failed call without paths of the machine. */
export function hideInErrors(output: ToolOutput, hidePaths: (text: string) => string): ToolOutput {
  if (output.isError !== true) return output;
  const content = output.content.map((block) =>
    block.type === "text" ? { ...block, text: hidePaths(block.text) } : block,
  );
  return { ...output, content };
}

function failed(text: string): ToolOutput {
  return { content: [{ type: "text", text }], isError: true };
}

function resultOf(call: ToolCallBlock, { content, isError = false, details }: ToolOutput): ResultDraft {
  const said = content.filter((block) => block.type !== "text" || block.text.trim() !== "");
  return {
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content: said.length === 0 ? [{ type: "text", text: "(no output)" }] : [...said],
    isError,
    ...(details === undefined ? {} : { details }),
  };
}
