import { SkeinError } from "../../../core/errors.ts";
import { present } from "../../../core/present.ts";
import type { CompactionNotDone } from "../../../sessions/compaction-options.ts";
import type { HandlersOf, SkeinDeps } from "../../calls/contract.ts";
import { contextOf, findSession } from "../shared/session-of.ts";

/** Of these another try may come to more. */
const ofSummariser: readonly CompactionNotDone["reason"][] = [
  "failed",
  "overflow",
  "empty",
  "too_long",
  "poor",
  "timed_out",
  "aborted",
];

/** The model of the session is asked for the summary. Nothing is written where there is none. */
export function compactHandlers(deps: SkeinDeps): HandlersOf<"sessions.compact"> {
  return {
    "sessions.compact": async (params, call) => {
      const session = await findSession(deps, call, params);
      const how = { signal: call.signal, ...present({ instructions: params.instructions }) };
      const outcome = await deps.skein.session(contextOf(session)).compact(how);
      if (!outcome.done) throw notCompacted(session.key, outcome);
      const { entryId, firstKeptEntryId, tokensBefore, tokensAfter } = outcome;
      const { key: sessionKey, sessionId } = session;
      return { key: sessionKey, sessionId, entryId, firstKeptEntryId, tokensBefore, tokensAfter };
    },
  };
}

function notCompacted(key: string, { reason, note }: CompactionNotDone): SkeinError {
  const problem = `The session ${key} was not compacted: ${note}`;
  return ofSummariser.includes(reason)
    ? new SkeinError("unavailable", { problem, advice: "Nothing was written; try it again" })
    : new SkeinError("conflict", { problem, advice: "Nothing was written, and the session is unchanged" });
}
