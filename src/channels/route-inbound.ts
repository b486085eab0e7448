import { SkeinError } from "../core/errors.ts";
import type { KeyForm } from "../core/keys.ts";
import { formatKey } from "../core/keys.ts";
import { parseAgentId } from "../core/names.ts";
import { own } from "../core/own.ts";
import { userSegment } from "../core/path-segment.ts";
import type { DeliveryTarget } from "../runs/contract.ts";
import type { InboundMessage } from "./contract.ts";

/** Whose direct messages share a session. */
export type DmScope = "per-channel-peer" | "per-peer" | "per-account-channel-peer" | "main";

/** What the configuration says of where messages belong. */
export interface RoutingSettings {
  readonly scope: "per-sender" | "global";
  readonly dmScope: DmScope;
  /** One person's peers (`channel:peer`) under one name. */
  readonly identityLinks: Readonly<Record<string, readonly string[]>>;
  readonly channels: Readonly<Record<string, ChannelUsers>>;
  /** The agent of a message that names none. */
  readonly agentId: string;
}

/** Whose the messages of a channel are. */
export interface ChannelUsers {
  /** The user that all of them belong to; `null`: each peer's own. */
  readonly user: string | null;
  /** The users that certain peers are; `null`: the unnamed one. */
  readonly users: Readonly<Record<string, string | null>>;
}

/** Where a message belongs, and where the answer to it goes. */
export interface InboundRoute {
  readonly userId: string | null;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly delivery: DeliveryTarget;
}

const longestId = 200;

/** Where a message from outside belongs. `invalid_arguments` for ids that cannot stand in a key or name a user. */
export function routeInbound(message: InboundMessage, settings: RoutingSettings): InboundRoute {
  checkIds(message);
  const agentId = parseAgentId(message.agentId ?? settings.agentId);
  const sender = senderOf(message, settings);
  const userId = userOf(message, settings, sender);
  try {
    if (userId !== null) userSegment(userId);
    const form = settings.scope === "global" ? null : formOf(message, settings, agentId, sender);
    const thread = message.threadId === undefined ? {} : { thread: message.threadId };
    const sessionKey = form === null ? "global" : formatKey({ ...form, ...thread });
    return { userId, agentId, sessionKey, delivery: deliveryOf(message) };
  } catch (error) {
    throw error instanceof SkeinError ? unusable(error) : error;
  }
}

/** Who speaks, as far as it is known. */
interface Sender {
  /** What stands for the peer in keys. */
  readonly name: string;
  /** The user that the peer is, or whose channel it is; `undefined`: nobody said. */
  readonly userId: string | null | undefined;
  /** Whether the peer is that user, and not somebody who talks to that user's agent. */
  readonly isUser: boolean;
}

function senderOf({ channel, peer }: InboundMessage, settings: RoutingSettings): Sender {
  const ofChannel = own(settings.channels, channel);
  const mapped = ofChannel === undefined ? undefined : own(ofChannel.users, peer);
  const links = Object.entries(settings.identityLinks);
  const link = links.find(([, peers]) => peers.includes(`${channel}:${peer}`))?.[0];
  const userId = mapped === undefined ? (ofChannel?.user ?? link) : mapped;
  // In a space of others a peer by the name of a link would be taken for whoever is linked.
  if (link === undefined && userId !== undefined && Object.hasOwn(settings.identityLinks, peer)) {
    const advice = `Link "${channel}:${peer}" in session.identityLinks, or give that link another name`;
    const problem = `Peer "${peer}" of channel "${channel}" has the name of an identity link that it is not part of`;
    throw new SkeinError("invalid_arguments", { problem, advice });
  }
  return {
    name: link ?? peer,
    userId,
    isUser: mapped !== undefined || (link !== undefined && link === userId),
  };
}

/** A group is nobody's own, whoever of it speaks; and where all share one session, they share its user. */
function userOf(
  { channel, peer, group }: InboundMessage,
  settings: RoutingSettings,
  sender: Sender,
): string | null {
  const ofChannel = own(settings.channels, channel)?.user ?? null;
  if (settings.scope === "global") return ofChannel;
  if (group !== undefined) return ofChannel ?? [channel, "group", group].map(escaped).join(":");
  return sender.userId === undefined ? [channel, peer].map(escaped).join(":") : sender.userId;
}

function formOf(
  { channel, accountId, group }: InboundMessage,
  { dmScope }: RoutingSettings,
  agentId: string,
  { name: peer, isUser }: Sender,
): KeyForm {
  if (group !== undefined) return { form: "group", agentId, channel, chat: "group", groupId: group };
  switch (dmScope) {
    case "main":
      return isUser ? { form: "main", agentId } : { form: "direct", agentId, channel, peer };
    case "per-peer":
      return { form: "direct", agentId, peer };
    case "per-account-channel-peer":
      return { form: "direct", agentId, channel, account: accountId ?? "default", peer };
    case "per-channel-peer":
      return { form: "direct", agentId, channel, peer };
  }
}

function deliveryOf({ channel, peer, group, accountId, threadId }: InboundMessage): DeliveryTarget {
  return {
    channel,
    to: group ?? peer,
    ...(accountId === undefined ? {} : { accountId }),
    ...(threadId === undefined ? {} : { threadId }),
  };
}

function checkIds({ channel, peer, group, accountId, threadId }: InboundMessage): void {
  for (const [name, id] of Object.entries({ channel, peer, group, accountId, threadId })) {
    if (id === undefined || (id !== "" && id.length <= longestId)) continue;
    const found = id === "" ? "is empty" : `has ${id.length} characters`;
    const advice = `Give it 1 to ${longestId} characters`;
    throw new SkeinError("invalid_arguments", { problem: `The ${name} of a message ${found}`, advice });
  }
}

function unusable(error: SkeinError): SkeinError {
  const problem = `The message names nobody whom a session can belong to: ${error.message.replace(/\.$/, "")}`;
  const advice = "Change the channel's name, or the peer, group, account or thread that it sends";
  return new SkeinError("invalid_arguments", { problem, advice }, { cause: error });
}

function escaped(id: string): string {
  return id.replaceAll("%", "%25").replaceAll(":", "%3A");
}
