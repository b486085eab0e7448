import { SkeinError } from "../../../core/errors.ts";
import { parseAgentId } from "../../../core/names.ts";
import { present } from "../../../core/present.ts";
import type { RuntimeContext } from "../../../sessions/runtime-context.ts";
import type { Speaker } from "../../../sessions/skein/speak-to.ts";
import { contextMeant, sessionMeant } from "../../../sessions/skein/speak-to.ts";
import type { SessionRecord } from "../../../store/contract.ts";
import type { Call, SkeinDeps } from "../../calls/contract.ts";

/** Which session a call is about. References are read among the sessions of the call's user, and no others. */

/** The session of a reference, which has to be there. */
export async function sessionOf(
  deps: SkeinDeps,
  call: Call,
  reference: string,
  agentId: string | undefined,
): Promise<SessionRecord> {
  return (await sessionMeant(deps.store, speaker(deps, call, agentId), reference)) ?? notThere(reference);
}

/** The same for whoever speaks to it: what reads as a key need not be there yet. */
export async function spokenTo(
  deps: SkeinDeps,
  call: Call,
  reference: string,
  agentId: string | undefined,
): Promise<RuntimeContext> {
  return (await contextMeant(deps.store, speaker(deps, call, agentId), reference)) ?? notThere(reference);
}

/** A session that was found, as the Skein is asked about it. */
export function contextOf({ userId, agentId, key: sessionKey, sessionId }: SessionRecord): RuntimeContext {
  return { agentId, sessionKey, sessionId, ...present({ userId }) };
}

function speaker(deps: SkeinDeps, { userId }: Call, agentId: string = deps.defaultAgentId): Speaker {
  const { config, newId } = deps;
  return { userId, asker: { agentId: parseAgentId(agentId), scope: config.session.scope }, newId };
}

function notThere(reference: string): never {
  const advice = "sessions.list shows which there are; only what reads as a key is made by speaking to it";
  throw new SkeinError("not_found", { what: "Session", name: reference, advice });
}
