import { present } from "../../core/present.ts";
import { keyMeant } from "../../core/references.ts";
import { resolveRef } from "./resolve-ref.ts";
import type { NamedSession } from "./whole-tree.ts";
import type { OpenSkeinCalls } from "./with-skein-calls.ts";

/** The session that is spoken to. What reads as a key need not be there yet; everything else must be. */
export async function spokenTo(open: OpenSkeinCalls, ref: string): Promise<NamedSession> {
  const { asker, reader } = open;
  const { agentId } = asker;
  const key = keyMeant(ref, asker) === null ? (await resolveRef(open, ref, { canBegin: true })).key : ref;
  return { key, agentId, ...present({ userId: reader.userId }) };
}
