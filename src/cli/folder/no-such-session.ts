import { SkeinError } from "../../core/errors.ts";
import { sessionIdProblem } from "../../core/names.ts";
import type { TrashedName } from "../../sessions/find-trashed.ts";
import { trashedAs } from "../../sessions/find-trashed.ts";
import type { OnBehalf } from "./on-behalf.ts";

/** Where a command looked, and for whom. */
export interface LookedIn extends Pick<OnBehalf, "asker" | "reader" | "toType" | "userId"> {
  readonly place: string;
}

interface Hints {
  /** The agent of which a session has the name as its label. */
  readonly elsewhere?: string | null;
  /** Whether a message to a key would begin the session. */
  readonly canBegin?: boolean;
}

/** That a reference means no session, with where was looked, whose label it is (`elsewhere`), or how to get it out of the trash. */
export function noSuchSession(
  looked: LookedIn,
  name: string,
  trashed: readonly TrashedName[],
  { elsewhere = null, canBegin = false }: Hints = {},
): SkeinError<"not_found"> {
  const { asker, toType } = looked;
  const isTrashed = trashedAs(trashed, name, asker).length > 0;
  const begin =
    canBegin && sessionIdProblem(name) === null ? `session:${name} begins a new session, or ` : "";
  const advice = isTrashed
    ? `It is in the trash: ${toType("sessions", "restore", name)}`
    : `Looked in ${placeOf(looked)}; ${
        elsewhere === null
          ? `${begin}see ${toType("sessions", "ls")}`
          : `a session of agent ${elsewhere} has this label, so add --agent ${elsewhere}`
      }`;
  return new SkeinError("not_found", { what: "Session", name, advice });
}

/** For people. */
export function placeOf({ place, asker, reader, userId }: LookedIn): string {
  const who = userId === null ? "the unnamed user" : `user ${userId}`;
  const whose =
    reader.agentId === undefined ? `as agent ${asker.agentId} of` : `in agent ${asker.agentId} of`;
  return `${place} ${whose} ${who}`;
}
