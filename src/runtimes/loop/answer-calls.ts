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
 * Does all calls of a message at once. Results are written in the order of the calls, each as soon as those before it
 * are: one that was done early waits. What ends the run ends it here at once, and nothing more is written.
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
    const all = calls.map((call) => {
      written = write(callTool(turn, call, origin, deps), written);
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

/** Together they wait for all that any of them waits for; one that names none waits for everything. */
function sleepOf(answers: readonly ToolAnswer[]): SleepRequest | null {
  const asked = answers.flatMap(({ sleep }) => (sleep === null ? [] : [sleep]));
  if (asked.length === 0) return null;
  const named = asked.flatMap(({ waitFor }) => (waitFor === undefined ? [] : [waitFor]));
  return named.length < asked.length ? {} : { waitFor: [...new Set(named.flat())] };
}
