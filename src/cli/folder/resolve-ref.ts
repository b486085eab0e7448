import { SkeinError } from "../../core/errors.ts";
import { readKey } from "../../core/keys.ts";
import { referenceLookups } from "../../core/references.ts";
import type { Result } from "../../protocol/methods/method-table.ts";
import type { SessionRow } from "../../protocol/session-list.ts";
import { noSuchSession } from "./no-such-session.ts";
import type { OpenCalls } from "./with-calls.ts";

type Resolved = Pick<Result<"sessions.resolve">, "key" | "sessionId">;

/**
 * The session that a person means, or an error that says where was looked. A label that nothing of the agent has may be that of a
 * child which it gave to another agent, as those of ACP agents are.
 */
export async function resolveRef(
  open: OpenCalls,
  name: string,
  { canBegin = false }: { readonly canBegin?: boolean } = {},
): Promise<Resolved> {
  const { calls, reader } = open;
  try {
    return await calls.call("sessions.resolve", { key: name, prefix: true, ...reader });
  } catch (error) {
    if (codeIn(error) !== "not_found") throw error;
    const labelled = await labelledElsewhere(open, name);
    const children = labelled.filter(({ spawnedBy = "" }) => agentOf(spawnedBy) === open.asker.agentId);
    if (children.length > 1) throw severalHaveIt(name, children);
    if (children[0] !== undefined) return { key: children[0].key, sessionId: children[0].sessionId };
    const { sessions } = await calls.call("sessions.trash", reader);
    throw noSuchSession(open, name, sessions, { elsewhere: agentOf(labelled[0]?.key ?? ""), canBegin });
  }
}

/** What a method finds this very session by. Its ID alone could be the name of the session that came after a reset. */
export function exactName({ key, sessionId }: Resolved): string {
  return key === "unknown" ? sessionId : key;
}

/** The same in the trash, where several may have had one key. */
export function exactTrashedName({ key, sessionId }: Resolved): string {
  const parsed = readKey(key);
  return "form" in parsed && parsed.form === "reset" ? key : sessionId;
}

/** Sessions of other agents with this label; none where one agent's are asked for, or where it can be no label. */
async function labelledElsewhere({ calls, reader, asker }: OpenCalls, name: string): Promise<SessionRow[]> {
  const isLabel = referenceLookups(name, asker).some(({ by }) => by === "label");
  if (!isLabel || reader.agentId !== undefined) return [];
  const pages = await Promise.all(
    [false, true].map((archived) => calls.call("sessions.list", { label: name, archived, ...reader })),
  );
  return pages.flatMap(({ sessions }) => sessions);
}

function severalHaveIt(name: string, found: readonly SessionRow[]): SkeinError<"ambiguous"> {
  const candidates = found.map(({ key }) => key).join(", ");
  return new SkeinError("ambiguous", { name, what: "session", candidates });
}

function agentOf(key: string): string | null {
  const parsed = readKey(key);
  return "agentId" in parsed ? parsed.agentId : null;
}

/** The code of an error, whether it came from here or from a gateway. */
export function codeIn(error: unknown): string | null {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : null;
}
