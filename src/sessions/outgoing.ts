import type { Channel, DeliveryError } from "../channels/contract.ts";
import { deliveryError } from "../channels/contract.ts";
import type { SendPolicy } from "../channels/send-policy.ts";
import { decideSend } from "../channels/send-policy.ts";
import type { Webhook } from "../channels/webhook.ts";
import { isSilentReply } from "../core/announcement.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { Accepted, DeliveryTarget, OutboxRequest, OutboxRow, Run } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";

/** Delivers a message to its session. Returns `null` if there is no such session. */
type ToSession = (letter: OutboxRow) => Promise<Accepted | null>;

/** Decides which replies are sent to channels and delivers them. */
export class Outgoing {
  readonly #channels: ReadonlyMap<string, Channel>;
  readonly #policy: SendPolicy;

  constructor(channels: ReadonlyMap<string, Channel>, policy: SendPolicy) {
    this.#channels = channels;
    this.#policy = policy;
  }

  /**
   * Returns the outbox row for a run's reply, or an empty list if there is nothing to deliver or delivery is not
   * allowed.
   */
  of(session: SessionRecord, run: Run, reply: string): readonly OutboxRequest[] {
    const target = this.targetOf(session, run);
    if (target === null || reply.trim() === "" || isSilentReply(reply)) return [];
    const { runId } = run;
    return [{ session: sessionRefOf(session), runId, target, text: reply, idempotencyKey: `reply:${runId}` }];
  }

  /** Returns where a run's reply is delivered, or `null` if it is not delivered or delivery is not allowed. */
  targetOf(session: SessionRecord, { options }: Pick<Run, "options">): DeliveryTarget | null {
    const { deliverTo: target } = options;
    if (target === undefined) return null;
    const channel = this.#channels.get(target.channel);
    if (isWebhook(channel) && channel.isInboundOnly) return null;
    const { action } = decideSend(this.#policy, {
      sessionKey: session.key,
      channel: target.channel,
      ...present({ override: session.meta.sendPolicy }),
    });
    return action === "deny" ? null : target;
  }

  async deliver(row: OutboxRow, signal: AbortSignal, toSession: ToSession): Promise<unknown> {
    const { session, target, text, idempotencyKey, runId } = row;
    if (target.channel === "session") return handOver(row, toSession);
    const channel = this.#channels.get(target.channel);
    if (channel === undefined) throw unreachable(target.channel, target.to);
    const { key: sessionKey, userId, agentId } = session;
    return channel.deliver({ text, idempotencyKey, sessionKey, runId, userId, agentId, signal }, target);
  }
}

async function handOver(row: OutboxRow, toSession: ToSession): Promise<unknown> {
  const { channel, to } = row.target;
  const accepted = await toSession(row).catch((error: unknown) => {
    if (!(error instanceof SkeinError) || error.code !== "budget_exceeded") throw error;
    // A root's budget never grows, so a retry would fail too.
    throw deliveryError(channel, error.message, { permanent: true });
  });
  if (accepted === null) throw unreachable(channel, to);
  return { runId: accepted.run.runId };
}

function unreachable(channel: string, to: string | undefined): DeliveryError {
  const problem =
    channel === "session"
      ? `the session ${to ?? ""} no longer exists, and neither does its parent`
      : `there is no channel named ${channel}`;
  // Another process on the same root folder might have the channel, so the message is retried like any other failure.
  return deliveryError(channel, problem, { permanent: channel === "session" });
}

export function isWebhook(channel: Channel | undefined): channel is Webhook {
  return channel !== undefined && "handler" in channel && typeof channel.handler === "function";
}
