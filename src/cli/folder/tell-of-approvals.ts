import type { SkeinEvent } from "../../core/events.ts";
import { stringifyJson } from "../../core/json.ts";
import { present } from "../../core/present.ts";
import { cutText } from "../../core/text.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { Heard } from "./heard.ts";
import { runOf } from "./settled.ts";
import { tell } from "./with-folder.ts";
import type { OpenSkeinCalls } from "./with-skein-calls.ts";

const longestCall = 200;

/**
 * Tells of each approval that a run begun from now on waits for, and how it is given: else nobody would know why nothing
 * happens. Whoever may not look at runs is told of none.
 */
export async function tellOfApprovals(
  terminal: Terminal,
  open: OpenSkeinCalls,
  options: GlobalOptions,
): Promise<Pick<Heard, "close">> {
  const since = terminal.now();
  const { userId } = open.reader;
  const told = async (event: SkeinEvent) => {
    if (event.type !== "approval.requested" || event.runId === undefined) return;
    const { sessionKey, toolName, arguments: args, approvalId } = event;
    const run = await runOf(open, event.runId);
    if (run === null || run.createdAt < since) return;
    const call = cutText(`${toolName} ${stringifyJson(args)}`, longestCall);
    tell(terminal, options, `${sessionKey} asks: ${call}`);
    tell(terminal, options, `to answer: ${open.toType("runs", "approve", approvalId)} (or deny)`);
  };
  const stream = open.calls.events({ events: ["approval.requested"], ...present({ userId }) });
  // What is not told of is there all the same: `runs ls` shows it.
  const heard = new Heard(stream, userId, (event) => void told(event).catch(() => undefined));
  await heard.ready;
  return heard;
}
