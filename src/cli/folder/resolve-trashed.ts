import { SkeinError } from "../../core/errors.ts";
import type { TrashRow } from "../../protocol/session-list.ts";
import { findTrashed } from "../../sessions/find-trashed.ts";
import { placeOf } from "./no-such-session.ts";
import type { OpenCalls } from "./with-calls.ts";

/** The session in the trash that a person means, or an error that says where was looked. */
export async function resolveTrashed(open: OpenCalls, name: string): Promise<TrashRow> {
  const { calls, reader, asker, toType } = open;
  const { sessions } = await calls.call("sessions.trash", reader);
  const found = findTrashed(sessions, name, asker, { prefix: true });
  if (found !== null) return found;
  const advice = `Looked in the trash of ${placeOf(open)}; see ${toType("sessions", "ls", "--trash")}`;
  throw new SkeinError("not_found", { what: "Session", name, advice });
}
