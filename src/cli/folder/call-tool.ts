import { present } from "../../core/present.ts";
import type { RuntimeContext } from "../../sessions/runtime-context.ts";
import type { Skein, ToolCalled } from "../../sessions/skein/skein.ts";
import type { ExitCode } from "../output/failure.ts";
import { CommandFailed } from "../output/failure.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { leftTo, settledHere } from "./settled-here.ts";
import { tell } from "./with-folder.ts";
import type { OpenSkein } from "./with-skein.ts";
import { contextFor } from "./with-skein.ts";

export interface ToolCall {
  readonly name: string;
  readonly args: unknown;
  /** The session that it is called for; left out: the agent's main one, if it is there. */
  readonly ref?: string | undefined;
  readonly key?: string | undefined;
}

/**
 * Calls a tool for a session, hands over the result, and stays until all that it set off has ended, unless nobody is to
 * wait. Ctrl-C ends the call, or aborts what it set off; a second one leaves.
 */
export async function callToolFor(
  terminal: Terminal,
  open: OpenSkein,
  { name, args, ref, key }: ToolCall,
  how: GlobalOptions & { readonly waits: boolean; show(result: ToolCalled["result"]): ExitCode },
): Promise<void> {
  const { skein } = open;
  const leaving = new AbortController();
  let rootId: string | null = null;
  const stopListening = terminal.onInterrupt(() => {
    stopListening();
    if (rootId === null) return leaving.abort(new CommandFailed());
    tell(terminal, how, "aborting; Ctrl-C again leaves");
    void abortAll(skein, rootId).catch((error: unknown) => tell(terminal, how, String(error)));
  });
  try {
    const context = {
      ...(ref === undefined ? nobody(open) : await contextFor(open, ref)),
      ...present({ idempotencyKey: key }),
      signal: leaving.signal,
    };
    const called = await skein.callTool(name, args, context);
    rootId = called.rootId;
    const exit = how.show(called.result);
    const isLeft = leaving.signal.aborted;
    if (isLeft && rootId !== null) await abortAll(skein, rootId);
    const left = how.waits && rootId !== null ? await settledHere(open, rootId) : [];
    if (left.length > 0) tell(terminal, how, leftTo(left));
    if (isLeft || exit !== 0) throw new CommandFailed(isLeft ? 1 : exit);
  } finally {
    stopListening();
  }
}

function nobody({ userId, asker: { agentId } }: OpenSkein): RuntimeContext {
  return { userId, agentId };
}

async function abortAll(skein: Skein, rootId: string): Promise<void> {
  const states = ["queued", "running", "waiting", "sleeping"] as const;
  const left = await skein.runs({ rootId, states });
  await Promise.all(left.map(({ runId }) => skein.abort(runId)));
}
