import { SkeinError } from "../../core/errors.ts";
import { displayKey } from "../../core/references.ts";
import type { Result } from "../../protocol/methods/method-table.ts";
import type { TrashRow } from "../../protocol/session-list.ts";
import type { OpenCalls } from "./with-calls.ts";

type Resolved = Result<"sessions.resolve">;

/** The session that a person means, or an error that says where was looked. */
export async function resolveRef(open: OpenCalls, name: string): Promise<Resolved> {
  const { calls, reader, toType } = open;
  try {
    return await calls.call("sessions.resolve", { key: name, prefix: true, ...reader });
  } catch (error) {
    if (codeIn(error) !== "not_found") throw error;
    const { sessions } = await calls.call("sessions.trash", reader);
    const isTrashed = sessions.some((each) => isNamed(each, name, open));
    const advice = isTrashed
      ? `It is in the trash: ${toType("sessions", "restore", name)}`
      : `Looked in ${placeOf(open)}; see ${toType("sessions", "ls")}`;
    throw new SkeinError("not_found", { what: "Session", name, advice });
  }
}

function isNamed({ key, sessionId, label }: TrashRow, name: string, { asker }: OpenCalls): boolean {
  if ([key, displayKey(key, asker), label].includes(name)) return true;
  return sessionId.toLowerCase().startsWith(name.toLowerCase());
}

/** Where a command looked, for people. */
export function placeOf({ place, asker, reader }: OpenCalls): string {
  const who = reader.userId === undefined ? "the unnamed user" : `user ${reader.userId}`;
  const whose =
    reader.agentId === undefined ? `as agent ${asker.agentId} of` : `in agent ${asker.agentId} of`;
  return `${place} ${whose} ${who}`;
}

/** The code of an error, whether it came from here or from a gateway. */
export function codeIn(error: unknown): string | null {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : null;
}
