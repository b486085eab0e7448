import { isDeepStrictEqual } from "node:util";
import type { InboundMessage } from "../channels/contract.ts";
import { routeInbound } from "../channels/route-inbound.ts";
import type { AcceptedInbound } from "../channels/webhook-inbound.ts";
import { inboundKey } from "../channels/webhook-inbound.ts";
import type { Provenance } from "../core/messages.ts";
import { present } from "../core/present.ts";
import { cutText } from "../core/text.ts";
import { runIdOf } from "../runs/ledger/run-ledger.ts";
import { scopeOfSession } from "../store/rules.ts";
import { acceptInput, findFor, withImages } from "./accept.ts";
import type { App } from "./app.ts";
import { resolveSessionTarget } from "./resolve-context.ts";

const longestPeerName = 200;

/**
 * Accepts a message from a channel. Accepting the same message again returns the same run. The reply is sent back
 * through the same channel.
 */
export async function receive(
  app: Pick<App, "store" | "runs" | "agents" | "acp" | "models" | "config" | "spaces" | "files">,
  message: InboundMessage,
  idempotencyKey = inboundKey(message),
): Promise<AcceptedInbound> {
  const { store, runs, config, agents } = app;
  const { scope, dmScope, identityLinks } = config.session;
  const routing = { scope, dmScope, identityLinks, channels: config.channels, agentId: agents.first };
  const route = routeInbound(message, routing);
  const { userId, delivery } = route;
  const { agentId, sessionKey } = (await boundSession({ store, runs }, message, userId)) ?? route;
  const { channel } = message;
  const context = resolveSessionTarget(app, { userId, agentId, sessionKey, channel, delivery });
  const { run, isNew } = await acceptInput(app, context, {
    kind: "channel",
    runId: runIdOf(userId, idempotencyKey),
    idempotencyKey,
    content: withImages(message.text, message.images),
    options: { deliverTo: delivery, origin: "channel" },
    provenance: { kind: "external_user", sourceChannel: channel, ...groupSender(message) },
  });
  const session = isNew ? await findFor(store, context) : null;
  if (session !== null && !isDeepStrictEqual(session.meta.delivery, delivery))
    await store.sessions.patch(scopeOfSession(session), session.sessionId, {
      channel,
      delivery: { ...delivery },
    });
  return { runId: run.runId, sessionKey: run.session.key, isNew };
}

/**
 * Returns the session that the message's thread is bound to, or `null` if the thread is not bound or the session no
 * longer exists.
 */
async function boundSession(
  { store, runs }: Pick<App, "store" | "runs">,
  { channel, accountId, threadId }: InboundMessage,
  userId: string | null,
): Promise<{ readonly agentId: string; readonly sessionKey: string } | null> {
  if (threadId === undefined) return null;
  const key = await runs.threadKey(userId, { channel, threadId, ...present({ accountId }) });
  if (key === null) return null;
  const [session] = await store.sessions.find(present({ userId }), { by: "key", key });
  return session === undefined ? null : { agentId: session.agentId, sessionKey: session.key };
}

/** Returns the sender of a group message. In other sessions, the key identifies the sender. */
function groupSender({ group, peer, peerName }: InboundMessage): Partial<Provenance> {
  if (group === undefined) return {};
  const name = peerName === undefined ? null : cutText(peerName, longestPeerName);
  return { sourcePeer: peer, ...present({ sourcePeerName: name }) };
}
