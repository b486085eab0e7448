import { SkeinError } from "../core/errors.ts";
import { own } from "../core/json.ts";
import type { KeyForm } from "../core/keys.ts";
import { formatKey } from "../core/keys.ts";
import { parseAgentId } from "../core/names.ts";
import { userSegment } from "../core/path-segment.ts";
import type { DeliveryTarget } from "../runs/contract.ts";
import type { InboundMessage } from "./contract.ts";

/** Determines which direct messages share a session. */
export type DmScope = "per-channel-peer" | "per-peer" | "per-account-channel-peer" | "main";

export interface RoutingSettings {
  readonly scope: "per-sender" | "global";
  readonly dmScope: DmScope;
  /** The addresses (`channel:peer`) that belong to one person, by the person's name. */
  readonly identityLinks: Readonly<Record<string, readonly string[]>>;
  readonly channels: Readonly<Record<string, ChannelRouting>>;
  /** The default agent. */
  readonly agentId: string;
}

/** The agent that receives a channel's messages, and the users that they belong to. */
export interface ChannelRouting {
  /** `null` is the default agent. */
  readonly agent: string | null;
  /** The user for all messages, or `null` if every peer is a separate user. */
  readonly user: string | null;
  /** The users for specific peers. `null` is the unnamed user. */
  readonly users: Readonly<Record<string, string | null>>;
}

/** The session for a message, and where its answer is delivered. */
export interface InboundRoute {
  readonly userId: string | null;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly delivery: DeliveryTarget;
}

const maxIdChars = 200;

/** Finds the session for an inbound message. Throws `invalid_arguments` if an ID cannot be part of a key or a user ID. */
export function routeInbound(message: InboundMessage, settings: RoutingSettings): InboundRoute {
  checkIds(message);
  const agentId = parseAgentId(
    message.agentId ?? own(settings.channels, message.channel)?.agent ?? settings.agentId,
  );
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

interface Sender {
  /** The peer's name in keys. */
  readonly name: string;
  /** The peer's own user, or the user whose agent the peer is talking to. `undefined` if nothing is configured. */
  readonly userId: string | null | undefined;
  /** Whether the peer is that user rather than another person talking to the user's agent. */
  readonly isUser: boolean;
}

function senderOf({ channel, peer }: InboundMessage, settings: RoutingSettings): Sender {
  const ofChannel = own(settings.channels, channel);
  const mapped = ofChannel === undefined ? undefined : own(ofChannel.users, peer);
  const links = Object.entries(settings.identityLinks);
  const link = links.find(([, peers]) => peers.includes(`${channel}:${peer}`))?.[0];
  const userId = mapped === undefined ? (ofChannel?.user ?? link) : mapped;
  // In a shared space, a peer with the same name as an identity link would be mistaken for the linked person.
  if (link === undefined && userId !== undefined && Object.hasOwn(settings.identityLinks, peer)) {
    const advice = `Add "${channel}:${peer}" to that link in session.identityLinks, or rename the link`;
    const problem = `Peer "${peer}" on channel "${channel}" has the same name as an identity link that does not include it`;
    throw new SkeinError("invalid_arguments", { problem, advice });
  }
  return {
    name: link ?? peer,
    userId,
    isUser: mapped !== undefined || (link !== undefined && link === userId),
  };
}

/** A group is a separate user, regardless of which member is writing. With the global scope, all messages share one user. */
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
    if (id === undefined || (id !== "" && id.length <= maxIdChars)) continue;
    const found = id === "" ? "is empty" : `has ${id.length} characters`;
    const advice = `Use 1 to ${maxIdChars} characters`;
    throw new SkeinError("invalid_arguments", { problem: `The message's ${name} ${found}`, advice });
  }
}

function unusable(error: SkeinError): SkeinError {
  const problem = `The message's IDs do not form a valid session key: ${error.message.replace(/\.$/, "")}`;
  const advice = "Change the channel's name, or the peer, group, account or thread in the message";
  return new SkeinError("invalid_arguments", { problem, advice }, { cause: error });
}

function escaped(id: string): string {
  return id.replaceAll("%", "%25").replaceAll(":", "%3A");
}
