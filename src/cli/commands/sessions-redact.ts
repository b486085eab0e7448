import { displayKey } from "../../core/references.ts";
import type { RedactedPayload } from "../../protocol/session-changes.ts";
import { exactName, findEntry, resolveRef } from "../connection/resolve-session.ts";
import { withCalls } from "../connection/with-calls.ts";
import type { AnswerLine } from "../output/answer.ts";
import { answer, pendingLines } from "../output/answer.ts";
import { counted } from "../output/format.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { confirm } from "../output/terminal.ts";

export async function redactCommand(
  terminal: Terminal,
  name: string,
  entryIds: readonly string[],
  options: GlobalOptions & { readonly yes?: boolean },
): Promise<void> {
  await withCalls(terminal, options, async (open) => {
    const found = await resolveRef(open, name);
    const key = exactName(found);
    const ids: string[] = [];
    for (const each of entryIds) ids.push(await findEntry(open, { key, ...open.reader }, each));
    const shown = displayKey(key, open.asker);
    const what = `what ${counted(ids.length, "entry says", "entries say")} in ${shown}`;
    await confirm(terminal, `Take ${what} out for good, in every copy?`, options);
    const params = { key, entryIds: ids, ...open.reader };
    const done = await open.calls.call("sessions.redact", params);
    answer(terminal, options, done, linesFor(done));
  });
}

function linesFor({ sessions, mayRepeat, erasePending }: RedactedPayload): AnswerLine[] {
  const pending = pendingLines({ erasePending });
  if (sessions.length === 0) return ["nothing was left to take out", ...pending];
  const gone = sessions.map(
    ({ sessionId, entryIds }): AnswerLine => [sessionId, counted(entryIds.length, "entry", "entries")],
  );
  const repeats = mayRepeat.map(({ sessionId, entryId }): AnswerLine => [sessionId, entryId]);
  const advice = repeats.length === 0 ? [] : ["summaries that may repeat it, to be looked at:", ...repeats];
  return ["taken out for good in:", ...gone, ...advice, ...pending];
}
