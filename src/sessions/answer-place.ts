import type { ApprovalPlace } from "../channels/chat/approval-cards.ts";
import type { AnswerPlace } from "../channels/chat/live-answers.ts";
import { readKey } from "../core/keys.ts";
import type { Run } from "../runs/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { App } from "./app.ts";

type PlaceApp = Pick<App, "outgoing"> & {
  readonly store: Pick<App["store"], "sessions">;
  readonly runs: Pick<App["runs"], "get">;
};

/** Returns where a run's answer is delivered, or `null` if it is not delivered to this channel. */
export async function findAnswerPlace(
  app: PlaceApp,
  channelId: string,
  runId: string,
): Promise<AnswerPlace | null> {
  const run = await app.runs.get(runId);
  return run === null ? null : placeOf(app, channelId, run);
}

/**
 * Returns where a run's approvals are requested. A spawned run has no conversation on a channel, so its approvals are
 * requested in the conversation that led to it.
 */
export async function findApprovalPlace(
  app: PlaceApp,
  channelId: string,
  runId: string,
): Promise<ApprovalPlace | null> {
  const run = await app.runs.get(runId);
  if (run === null) return null;
  const { rootId } = run.root;
  const root = rootId === runId ? run : ((await app.runs.get(rootId)) ?? run);
  const place = (await placeOf(app, channelId, run)) ?? (await placeOf(app, channelId, root));
  return place === null ? null : { ...place, peer: peerOf(root) ?? peerOf(run) };
}

async function placeOf(app: PlaceApp, channelId: string, run: Run): Promise<AnswerPlace | null> {
  if (run.options.deliverTo?.channel !== channelId) return null;
  const session = await app.store.sessions.get(scopeOfSession(run.session), run.session.sessionId);
  const target = session === null ? null : app.outgoing.targetOf(session, run);
  return target === null ? null : { runId: run.runId, sessionKey: run.session.key, target };
}

/** Returns the person whose message started a run, or `null` if unknown. A direct conversation has only one peer. */
function peerOf({ provenance, session, options }: Run): string | null {
  if (provenance?.sourcePeer !== undefined) return provenance.sourcePeer;
  const key = readKey(session.key);
  const isGroup = "problem" in key || key.form === "group";
  return isGroup || provenance?.kind !== "external_user" ? null : (options.deliverTo?.to ?? null);
}
