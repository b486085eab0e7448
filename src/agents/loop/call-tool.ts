import { unlessAborted } from "../../core/concurrency.ts";
import type { Entry } from "../../core/entries.ts";
import { HookStop, messageWithoutPaths, SkeinError } from "../../core/errors.ts";
import { hashedId } from "../../core/hashed-id.ts";
import { canonicalJson } from "../../core/json.ts";
import type { ToolCallBlock } from "../../core/messages.ts";
import type { ResultDraft } from "../../core/seal.ts";
import { cutText, thrownText } from "../../core/text.ts";
import { RunStopped } from "../../runs/worker.ts";
import type { SleepRequest, Tool, ToolCallContext, ToolOutput, Turn } from "../contract.ts";
import type { LoopServices } from "./services.ts";

/** The result of a call and whether the run should sleep. */
interface ToolAnswer {
  readonly result: ResultDraft;
  readonly sleep: SleepRequest | null;
}

/** The entry that contains the call and whether the call might already have been carried out. */
interface CallOrigin {
  readonly entryId: string;
  readonly isReplay: boolean;
}

const maxErrorLength = 8000;

/**
 * Runs one call. A problem with the call becomes a failed result that the model can act on. Only errors that end the
 * run are thrown: an abort, a failed check, a hook that stops the run, or a write under a lost fence.
 */
async function callTool(
  turn: Turn,
  call: ToolCallBlock,
  origin: CallOrigin,
  services: LoopServices,
): Promise<ToolAnswer> {
  await turn.check();
  turn.signal.throwIfAborted();
  turn.emit({ type: "tool_call", call });
  const began = services.clock.now();
  const { output, call: made } = await attempt(turn, call, origin).catch((error: unknown) => {
    turn.signal.throwIfAborted();
    if (endsRun(error)) throw error;
    const text = error instanceof SkeinError ? messageWithoutPaths(error) : thrownText(error);
    return { output: failed(cutText(text, maxErrorLength)), call };
  });
  const result = resultOf(call, turn.hidePaths === undefined ? output : hideInErrors(output, turn.hidePaths));
  const durationMs = services.clock.now() - began;
  await turn.hooks.afterToolCall(made, result, durationMs);
  const { isError, content } = result;
  turn.emit({ type: "tool_result", call: made, isError, content, durationMs });
  return { result, sleep: isError ? null : (output.sleep ?? null) };
}

/** Whether another process owns the run, a hook stopped the run, or this process is closing. */
function endsRun(error: unknown): boolean {
  if (error instanceof HookStop || error instanceof RunStopped) return true;
  return error instanceof SkeinError && error.code === "fenced";
}

interface Attempt {
  readonly output: ToolOutput;
  /** The call, with its arguments after hooks. */
  readonly call: ToolCallBlock;
}

async function attempt(turn: Turn, call: ToolCallBlock, origin: CallOrigin): Promise<Attempt> {
  const tool = turn.tools.find(({ name }) => name === call.name);
  const refusal = refusalOf(turn, call, tool, origin);
  if (refusal !== null || tool === undefined) return { output: failed(refusal ?? ""), call };
  const { signal, hooks } = turn;
  const approve = async (made: ToolCallBlock) => {
    const { isReplay } = origin;
    const answer = await turn.approve(made, { callDigest: digestCall(tool, made, origin), isReplay });
    // The run might have ended while the approval was pending.
    await turn.check();
    return answer;
  };
  const answer = await callUnderPolicy({ signal, hooks, approve }, tool, call, (args, made) =>
    execute(turn, tool, args, made, origin.entryId),
  );
  if ("refusal" in answer) return { output: failed(answer.refusal.error), call: answer.call };
  return answer;
}

/**
 * Distinguishes a call from the calls in other answers, because a model can reuse call IDs. A repeated call whose
 * arguments a hook changes differently is another call. The log might hold only part of the arguments, so only that part
 * counts.
 */
function digestCall(tool: Tool, { name, arguments: args }: ToolCallBlock, { entryId }: CallOrigin): string {
  return hashedId(entryId, name, canonicalJson(tool.persisted?.(args) ?? args));
}

/** Returns the reason why a call must not be made, or `null` if it is allowed. */
function refusalOf(
  turn: Turn,
  call: ToolCallBlock,
  tool: Tool | undefined,
  { isReplay }: CallOrigin,
): string | null {
  if (call.skein?.invalidInput === true) {
    const written = cutText(String(call.arguments.input), 200);
    return `The arguments are not a JSON object: ${written}\nCall ${call.name} again with an object that matches its schema.`;
  }
  if (isReplay && tool?.replay !== "safe") {
    return "The run was interrupted during this call, so it is unknown whether the call took effect. Check before you call it again.";
  }
  if (tool !== undefined) return null;
  const names = turn.tools.map(({ name }) => name).join(", ");
  return `There is no tool "${call.name}". ${names === "" ? "No tools are available." : `The available tools are: ${names}.`}`;
}

/** Runs the tool. If the run is aborted, rejects without waiting for the tool to return. */
function execute(
  turn: Turn,
  tool: Tool,
  args: unknown,
  call: ToolCallBlock,
  entryId: string,
): Promise<ToolOutput> {
  const { about, signal, state } = turn;
  const whileWaiting = turn.whileWaiting?.bind(turn) ?? waitInSlot;
  const context = { about, toolCallId: call.id, entryId, signal, state, whileWaiting };
  return unlessAborted(
    Promise.resolve().then(() => tool.execute(args, context)),
    signal,
  );
}

const waitInSlot: ToolCallContext["whileWaiting"] = async (_, wait) => ({
  entered: true,
  value: await wait(),
});

/** Returns the output of a failed call with local paths removed. */
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
  const shown = content.filter((block) => block.type !== "text" || block.text.trim() !== "");
  return {
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content: shown.length === 0 ? [{ type: "text", text: "(no output)" }] : [...shown],
    isError,
    ...(details === undefined ? {} : { details }),
  };
}

/** Determines whether an offered tool can be called. */
export interface CallPolicy extends Pick<Turn, "signal" | "approve"> {
  readonly hooks: Pick<Turn["hooks"], "beforeToolCall">;
}

/** Why a call was not made. */
interface CallRefusal {
  readonly code: "forbidden" | "invalid_arguments";
  readonly error: string;
}

type PolicyAnswer<Output> = {
  /** The call, with its arguments after hooks. */
  readonly call: ToolCallBlock;
} & ({ readonly output: Output } | { readonly refusal: CallRefusal });

/**
 * Calls a tool, inside or outside a run. Runs the hooks first, then checks the arguments, then requests approval if
 * needed.
 */
export async function callUnderPolicy<Output>(
  policy: CallPolicy,
  tool: Tool,
  call: ToolCallBlock,
  execute: (args: unknown, call: ToolCallBlock) => Promise<Output>,
): Promise<PolicyAnswer<Output>> {
  const hooked = await policy.hooks.beforeToolCall(call);
  if (hooked.block !== null) return refuse(call, "forbidden", `This call was blocked: ${hooked.block}`);
  const made = { ...call, arguments: { ...hooked.arguments } };
  const checked = await tool.check(made.arguments);
  if ("problem" in checked) {
    return refuse(
      made,
      "invalid_arguments",
      `The arguments for ${tool.name} are invalid: ${checked.problem}`,
    );
  }
  if (await tool.needsApproval(made.arguments)) {
    const { approved, note } = await unlessAborted(policy.approve(made), policy.signal);
    if (!approved) return refuse(made, "forbidden", `This call was not approved. ${note}`.trimEnd());
  }
  return { call: made, output: await execute(checked.args, made) };
}

function refuse(
  call: ToolCallBlock,
  code: CallRefusal["code"],
  error: string,
): { readonly call: ToolCallBlock; readonly refusal: CallRefusal } {
  return { call, refusal: { code, error } };
}

export interface AnsweredCall {
  readonly call: ToolCallBlock;
  readonly result: ResultDraft;
}

export interface AnsweredCalls {
  readonly answered: readonly AnsweredCall[];
  /** The entry ID of the last result written, or `null` if none was written. */
  readonly entryId: string | null;
  /** The combined sleep request from the tools, or `null` if no tool requested sleep. */
  readonly sleep: SleepRequest | null;
}

/**
 * Runs all tool calls in a message in parallel, except calls to tools that must run last. Each result is written as
 * soon as its call has finished. If the run ends early, this rejects immediately and writes nothing more.
 */
export async function answerCalls(
  turn: Turn,
  calls: readonly ToolCallBlock[],
  origin: CallOrigin,
  services: LoopServices,
): Promise<AnsweredCalls> {
  const answers: (ToolAnswer | null)[] = calls.map(() => null);
  let last: Entry | null = null;
  let isOver = false;
  const write = async (doing: Promise<ToolAnswer>, index: number) => {
    const answer = await doing;
    if (isOver) return;
    const { entry } = await turn.say(answer.result);
    last = entry ?? last;
    answers[index] = answer;
  };
  try {
    const started = startAll(turn, calls, (call) => callTool(turn, call, origin, services));
    // If the turn is aborted, a tool or hook that hangs is not waited for.
    await unlessAborted(Promise.all(started.map(write)), turn.signal);
  } finally {
    isOver = true;
  }
  const answered = calls.flatMap((call, index) => {
    const answer = answers[index] ?? null;
    return answer === null ? [] : [{ call, ...answer }];
  });
  return { answered, entryId: (last as Entry | null)?.id ?? null, sleep: sleepOf(answered) };
}

/** Starts the calls in order. A tool that must run last is not called if another call ends the run. */
function startAll(
  { tools }: Turn,
  calls: readonly ToolCallBlock[],
  start: (call: ToolCallBlock) => Promise<ToolAnswer>,
): Promise<ToolAnswer>[] {
  const lastNames = new Set(tools.filter(({ isLast }) => isLast === true).map(({ name }) => name));
  const started = calls.map((call) => (lastNames.has(call.name) ? null : start(call)));
  const others = started.filter((doing) => doing !== null);
  return calls.map((call, index) => started[index] ?? Promise.all(others).then(() => start(call)));
}

/** Merges the sleep requests. A request that names no runs waits for every open run. */
function sleepOf(answers: readonly Pick<ToolAnswer, "sleep">[]): SleepRequest | null {
  const asked = answers.flatMap(({ sleep }) => (sleep === null ? [] : [sleep]));
  if (asked.length === 0) return null;
  const named = asked.flatMap(({ waitFor }) => (waitFor === undefined ? [] : [waitFor]));
  return named.length < asked.length ? {} : { waitFor: [...new Set(named.flat())] };
}
