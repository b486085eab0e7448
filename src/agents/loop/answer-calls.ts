import type { Entry } from "../../core/entries.ts";
import type { ToolCallBlock } from "../../core/messages.ts";
import type { SleepRequest, Turn } from "../contract.ts";
import type { CallOrigin, ResultDraft, ToolAnswer } from "./call-tool.ts";
import { callTool } from "./call-tool.ts";
import type { LoopDeps } from "./waits.ts";
import { unlessAborted } from "./waits.ts";

export interface AnsweredCall {
  readonly call: ToolCallBlock;
  readonly result: ResultDraft;
}

export interface AnsweredCalls {
  readonly answered: readonly AnsweredCall[];
  /** Of the last result that was written; `null`: none was. */
  readonly entryId: string | null;
  /** What the tools asked for that want to sleep; `null`: none does. */
  readonly sleep: SleepRequest | null;
}

/**
 * Does all calls of a message at once, but for those of tools that come last. Results are written in the order of the
 * calls, each as soon as those before it are: one that was done early waits. What ends the run ends it here at once, and
 * nothing more is written.
 */
export async function answerCalls(
  turn: Turn,
  calls: readonly ToolCallBlock[],
  origin: CallOrigin,
  deps: LoopDeps,
): Promise<AnsweredCalls> {
  const answers: ToolAnswer[] = [];
  let last: Entry | null = null;
  let isOver = false;
  let written: Promise<void> = Promise.resolve();
  const write = async (doing: Promise<ToolAnswer>, before: Promise<void>): Promise<void> => {
    const [answer] = await Promise.all([doing, before]);
    if (isOver) return;
    const { entry } = await turn.say(answer.result);
    last = entry ?? last;
    answers.push(answer);
  };
  try {
    const all = startAll(turn, calls, (call) => callTool(turn, call, origin, deps)).map((doing) => {
      written = write(doing, written);
      return written;
    });
    // Whatever a call hangs in, a tool or a hook: an abort waits for none.
    await unlessAborted(Promise.all(all), turn.signal);
  } finally {
    isOver = true;
  }
  const answered = answers.flatMap(({ result }, index) => {
    const call = calls[index];
    return call === undefined ? [] : [{ call, result }];
  });
  return { answered, entryId: (last as Entry | null)?.id ?? null, sleep: sleepOf(answers) };
}

/** In the order of the calls. A call of a tool that comes last is not made where another call ends the run. */
function startAll(
  { tools }: Turn,
  calls: readonly ToolCallBlock[],
  start: (call: ToolCallBlock) => Promise<ToolAnswer>,
): Promise<ToolAnswer>[] {
  const lastOnes = new Set(tools.filter(({ isLast }) => isLast === true).map(({ name }) => name));
  const begun = calls.map((call) => (lastOnes.has(call.name) ? null : start(call)));
  const others = begun.filter((doing) => doing !== null);
  return calls.map((call, index) => begun[index] ?? Promise.all(others).then(() => start(call)));
}

/** Together they wait for all that any of them waits for; one that names none waits for everything. */
function sleepOf(answers: readonly ToolAnswer[]): SleepRequest | null {
  const asked = answers.flatMap(({ sleep }) => (sleep === null ? [] : [sleep]));
  if (asked.length === 0) return null;
  const named = asked.flatMap(({ waitFor }) => (waitFor === undefined ? [] : [waitFor]));
  return named.length < asked.length ? {} : { waitFor: [...new Set(named.flat())] };
}
