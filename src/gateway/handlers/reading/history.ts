import { present } from "../../../core/present.ts";
import { keyMeant } from "../../../core/references.ts";
import type { Params } from "../../../protocol/methods/method-table.ts";
import type { HistoryPayload } from "../../../protocol/session-payloads.ts";
import { readHistory } from "../../../sessions/history-range.ts";
import type { SessionRecord } from "../../../store/contract.ts";
import type { Call, FolderDeps, HandlersOf } from "../../calls/contract.ts";
import { Repeated } from "../../calls/repeated.ts";
import { maskFor } from "../../masking/mask.ts";
import { askerOf, findSession, scopeOf } from "../shared/session-of.ts";

/** What of a session stays as it is for as long as its row does. */
type Found = Pick<SessionRecord, "uid" | "key" | "sessionId">;
type HistoryParams = Params<"chat.history">;

/** Remembered for as long as nothing changes: those that people have before them, some megabytes of them. */
const mostPages = 1000;
const mostText = 16 * 1024 * 1024;

/**
 * What was said, page by page. A page is the same as before where neither the sessions and runs of the folder nor the log of
 * this session have changed, by whatever process; both are asked each time.
 */
export function historyHandlers(deps: FolderDeps): HandlersOf<"chat.history"> {
  const sessions = new Repeated<Found>({ most: mostPages });
  const pages = new Repeated<HistoryPayload>({ most: mostPages, mostText });
  return {
    "chat.history": async (params, call) => {
      const work = deps.workMark();
      const look = () => sessionFor(deps, params, call);
      if (work === null) return pageFor(deps, params, call, await look());
      const name = JSON.stringify([params, call.userId, call.isAdmin]);
      const session = await (isOfKey(params) ? sessions.get(name, work, look) : look());
      const log = deps.logMark(session);
      // Of a session that nobody has asked for lately nothing is remembered: it may well be asked for once.
      if (log === null) return pageFor(deps, params, call, session);
      const find = () => pageFor(deps, params, call, session);
      return pages.get(name, `${work} ${log}`, find, () => `${work} ${deps.logMark(session)}`);
    },
  };
}

/** A key means what the database says. Under any other name a file may lie there that nobody has taken in yet. */
function isOfKey({ sessionKey }: HistoryParams): boolean {
  return sessionKey === "main" || sessionKey.includes(":");
}

/** As `findSession`; where a key is named, its log is not read for that. */
async function sessionFor(deps: FolderDeps, params: HistoryParams, call: Call): Promise<Found> {
  const key = keyMeant(params.sessionKey, askerOf(deps, params));
  const found = key === null ? null : deps.sessionAt(call.userId, key);
  return found ?? findSession(deps, call, params);
}

async function pageFor(
  deps: FolderDeps,
  { limit, before, after }: HistoryParams,
  call: Call,
  session: Found,
): Promise<HistoryPayload> {
  const mask = maskFor(deps, call);
  const range = present({ limit, before, after });
  const pending = await deps.pending(session.uid);
  const seen = <T extends object>(value: T) => mask.value(value);
  return readHistory(deps.store.sessions, scopeOf(call), session, range, pending, seen);
}
