import type { SessionStatePayload } from "../../../protocol/session-changes.ts";
import { sessionState } from "../../../sessions/change-session.ts";
import type { SessionRecord } from "../../../store/contract.ts";
import type { Call, FolderDeps } from "../../calls/contract.ts";
import { maskFor } from "../../masking/mask.ts";

/** A session as it is now, for the caller: its name is words of people's, as lists show it. */
export function shownState(deps: FolderDeps, record: SessionRecord, call: Call): SessionStatePayload {
  const state = sessionState(record, call);
  const { displayName } = state;
  return displayName === undefined ? state : { ...state, displayName: maskFor(deps, call).text(displayName) };
}
