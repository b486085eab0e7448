import { kindOf, readKey } from "../../core/keys.ts";
import { present } from "../../core/present.ts";
import type { DeliveryTarget } from "../../runs/contract.ts";
import type { SessionRecord } from "../../store/contract.ts";

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
