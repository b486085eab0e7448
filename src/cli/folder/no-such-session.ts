import { SkeinError } from "../../core/errors.ts";
import type { TrashedName } from "../../sessions/find-trashed.ts";
import { trashedAs } from "../../sessions/find-trashed.ts";
import type { OnBehalf } from "./on-behalf.ts";

/** Where a command looked, and for whom. */
export interface LookedIn extends Pick<OnBehalf, "asker" | "reader" | "toType"> {
  readonly place: string;
}

/** That a reference means no session, with where was looked, whose label it is (`elsewhere`), or how to get it out of the trash. */
export function noSuchSession(
  looked: LookedIn,
  name: string,
  trashed: readonly TrashedName[],
  elsewhere: string | null = null,
): SkeinError<"not_found"> {
  const { asker, toType } = looked;
  const isTrashed = trashedAs(trashed, name, asker).length > 0;
  const advice = isTrashed
    ? `It is in the trash: ${toType("sessions", "restore", name)}`
    : `Looked in ${placeOf(looked)}; ${
        elsewhere === null
          ? `see ${toType("sessions", "ls")}`
          : `a session of agent ${elsewhere} has this label, so add --agent ${elsewhere}`
      }`;
  return new SkeinError("not_found", { what: "Session", name, advice });
}

/** For people. */
export function placeOf({ place, asker, reader }: LookedIn): string {
  const who = reader.userId === undefined ? "the unnamed user" : `user ${reader.userId}`;
  const whose =
    reader.agentId === undefined ? `as agent ${asker.agentId} of` : `in agent ${asker.agentId} of`;
  return `${place} ${whose} ${who}`;
}
