import { kindOf, readKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { DeliveryTarget, Run } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";

type Placed = Pick<SessionRecord, "key" | "meta">;

/**
 * Where words of a session reach people: what was written down when they spoke, else what its key says, with account and
 * thread. `null`: it has no channel outside.
 */
export function outsideChannel({ key, meta }: Placed): DeliveryTarget | null {
  const parsed = readKey(key);
  if ("problem" in parsed || ["cron", "hook", "node"].includes(kindOf(parsed))) return null;
  const fromKey = keyTarget(parsed);
  const { delivery } = meta;
  if (delivery === undefined) return fromKey;
  if (delivery.channel === "internal") return null;
  const threadId = delivery.threadId ?? fromKey?.threadId;
  return { ...delivery, ...present({ threadId }) };
}

/**
 * Where a session's answer goes to what comes back to it, of a child or of a message: where the answer of the run goes that
 * set it off, and nowhere else; outside of runs, where people spoke to it. A spawned session's goes to its parent alone.
 */
export function answerTarget(by: {
  readonly run: Pick<Run, "options"> | null;
  readonly session: Placed;
}): DeliveryTarget | undefined {
  if (by.run !== null) return by.run.options.deliverTo;
  const { spawnedBy, delivery } = by.session.meta;
  return spawnedBy === undefined ? delivery : undefined;
}

/** The channel that a session is on; `null`: none. */
export function channelOf(session: Placed): string | null {
  const channel = session.meta.channel ?? outsideChannel(session)?.channel;
  return channel === undefined || channel === "internal" ? null : channel;
}

function keyTarget(key: Exclude<ReturnType<typeof readKey>, { problem: string }>): DeliveryTarget | null {
  if (key.form === "group") {
    return { channel: key.channel, to: key.groupId, ...present({ threadId: key.thread }) };
  }
  if (key.form !== "direct" || key.channel === undefined || key.channel === "internal") return null;
  const { channel, peer: to, account: accountId, thread: threadId } = key;
  return { channel, to, ...present({ accountId, threadId }) };
}
