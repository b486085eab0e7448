import { present } from "../../core/present.ts";
import type { ToolResult } from "../../tools/contract.ts";
import type { ExitCode } from "../output/errors.ts";
import { CommandFailed } from "../output/errors.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { codeIn, spokenTo } from "./resolve-session.ts";
import { abortAll, leftTo, settledWithClaimed, tellOfApprovals } from "./wait-for-runs.ts";
import { tell } from "./with-folder.ts";
import type { OpenSkeinCalls } from "./with-skein-calls.ts";

export interface ToolCall {
  readonly name: string;
  readonly args: unknown;
  /** The session that it is called for; left out: the agent's main one, if it is there. */
  readonly ref?: string | undefined;
  readonly key?: string | undefined;
}

/** What is shown on stderr while a call waits. */
export interface Watched {
  /** The result is there: what comes before it is printed first. */
  beforeResult(result: ToolResult): Promise<void>;
  /** All that was set off has ended. */
  whenSettled(): Promise<void>;
  close(): void;
}

/**
 * Calls a tool for a session, hands over the result, and stays until all that it set off has ended, and what had to run before
 * it, unless nobody is to wait. Ctrl-C ends the call, or aborts what it set off; a second one leaves.
 */
export async function callToolFor(
  terminal: Terminal,
  open: OpenSkeinCalls,
  call: ToolCall,
  how: GlobalOptions & {
    readonly waits: boolean;
    show(result: ToolResult): ExitCode;
    /** Shows meanwhile what is set off, from before there is anything. */
    watch?(): Promise<Watched | null>;
  },
): Promise<void> {
  const leaving = new AbortController();
  let setOff: string | null = null;
  const stopListening = terminal.onInterrupt(() => {
    stopListening();
    tell(terminal, how, "aborting; Ctrl-C again leaves");
    if (setOff === null) return leaving.abort(new CommandFailed());
    void abortAll(open, setOff).catch((error: unknown) => tell(terminal, how, String(error)));
  });
  const approvals = how.waits ? await tellOfApprovals(terminal, open, how) : null;
  let watched: Watched | null = null;
  try {
    watched = (await how.watch?.()) ?? null;
    const { result, rootId = null } = await invoke(open, call, leaving.signal);
    setOff = rootId;
    await watched?.beforeResult(result as ToolResult);
    const exit = how.show(result as ToolResult);
    const isLeft = leaving.signal.aborted;
    if (isLeft && rootId !== null) await abortAll(open, rootId);
    const left = how.waits && rootId !== null ? await settledWithClaimed(open, rootId).catch(notTold) : [];
    if (how.waits) await watched?.whenSettled();
    if (left === null) tell(terminal, how, "the gateway goes on with it: this token may not look at runs");
    else if (left.length > 0) tell(terminal, how, leftTo(left));
    if (isLeft || exit !== 0) throw new CommandFailed(isLeft ? 1 : exit);
  } finally {
    stopListening();
    watched?.close();
    approvals?.close();
  }
}

async function invoke(open: OpenSkeinCalls, { name, args, ref, key }: ToolCall, signal: AbortSignal) {
  const { agentId } = open.asker;
  const { userId } = open.reader;
  const { key: sessionKey, ...whose } =
    ref === undefined ? { key: undefined, agentId, ...present({ userId }) } : await spokenTo(open, ref);
  const params = {
    ...whose,
    ...present({ sessionKey, idempotencyKey: key }),
    name,
    // What is no object is refused, in words about the field.
    arguments: args as Record<string, unknown>,
  };
  return open.calls.call("tools.invoke", params, { signal });
}

/** Who may call tools need not be one who may see runs. */
function notTold(error: unknown): null {
  if (codeIn(error) === "forbidden") return null;
  throw error;
}
