import { displayKey } from "../../core/references.ts";
import type { RedactedPayload } from "../../protocol/session-changes.ts";
import type { Redaction } from "../../store/contract.ts";
import { findEntryId } from "../folder/find-entry.ts";
import { findSession } from "../folder/find-session.ts";
import { withFolder } from "../folder/with-folder.ts";
import { counted } from "../output/amounts.ts";
import type { AnswerLine } from "../output/answer.ts";
import { answer } from "../output/answer.ts";
import { confirm } from "../output/confirm.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";

export async function redactCommand(
  terminal: Terminal,
  name: string,
  entryIds: readonly string[],
  options: GlobalOptions & { readonly yes?: boolean },
): Promise<void> {
  await withFolder(terminal, options, async (folder) => {
    const { store, scope, asker } = folder;
    const record = await findSession(folder, name);
    const ids: string[] = [];
    for (const each of entryIds) ids.push(await findEntryId(folder, record, each));
    const shown = displayKey(record.key, asker);
    const what = `what ${counted(ids.length, "entry says", "entries say")} in ${shown}`;
    await confirm(terminal, `Take ${what} out for good, in every copy?`, options);
    const { sessions, mayRepeat } = await store.sessions.redact(scope, record.sessionId, ids);
    const payload: RedactedPayload = {
      key: record.key,
      sessionId: record.sessionId,
      sessions: sessions.map(({ sessionId, entryIds: gone }) => ({ sessionId, entryIds: [...gone] })),
      mayRepeat: mayRepeat.map(({ sessionId, entryId }) => ({ sessionId, entryId })),
    };
    answer(terminal, options, payload, linesFor({ sessions, mayRepeat }));
  });
}

function linesFor({ sessions, mayRepeat }: Redaction): AnswerLine[] {
  if (sessions.length === 0) return ["nothing was left to take out"];
  const gone = sessions.map(
    ({ sessionId, entryIds }): AnswerLine => [sessionId, counted(entryIds.length, "entry", "entries")],
  );
  const repeats = mayRepeat.map(({ sessionId, entryId }): AnswerLine => [sessionId, entryId]);
  const advice = repeats.length === 0 ? [] : ["summaries that may repeat it, to be looked at:", ...repeats];
  return ["taken out for good in:", ...gone, ...advice];
}
