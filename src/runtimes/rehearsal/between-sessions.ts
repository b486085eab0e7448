import { arrivalsText, isNoted, repliedText } from "./answers.ts";
import type { Conversation } from "./conversation.ts";
import type { Reply } from "./reply.ts";
import { says } from "./reply.ts";
import type { Language } from "./words.ts";

/** Turns that another session or the system set off. Each of them is answered once, and none calls for another. */

const announceWish = /\bannounce\b|\bpublish\b|宣布|公布|播报|通知大家/iu;

/** To an announce step: nothing, unless whoever began it asked for it. `null`: it is none. */
export function announceStep({ request, system, before }: Conversation): Reply | null {
  if (!request.includes("ANNOUNCE_SKIP") && !system.includes("ANNOUNCE_SKIP")) return null;
  const wished = before.some(({ role, text }) => role === "user" && announceWish.test(text.slice(0, 4000)));
  const said = before.findLast(
    ({ role, text }) => role === "assistant" && text !== "" && text !== "REPLY_SKIP",
  );
  return says(wished && said !== undefined ? said.text : "ANNOUNCE_SKIP");
}

/** To a second turn of one exchange there is nothing to add. `null`: it is none. */
export function pingPong({ request, system, source, before }: Conversation): Reply | null {
  const isTold = request.includes("REPLY_SKIP") || (source !== null && system.includes("REPLY_SKIP"));
  if (!isTold && !(source !== null && isNoted(request))) return null;
  const hasSpoken = before.some(
    ({ role, called, source: from }) =>
      (role === "assistant" && called.includes("sessions_send")) ||
      (role === "user" && from !== null && from.session === source?.session),
  );
  return hasSpoken || isNoted(request) ? says("REPLY_SKIP") : null;
}

const replyAnnounced =
  /^(?:The session (?<replied>\S{1,5000}), which you sent a message to, has ended its turn|Your exchange with the session (?<exchanged>\S{1,5000}) is over)\./;

/** What became of a message that was sent, told later. `null`: it is something else. */
export function lateReply({ request, source }: Conversation, language: Language): Reply | null {
  const found = source === null || source.isQuoted ? null : replyAnnounced.exec(request);
  const session = found?.groups?.replied ?? found?.groups?.exchanged;
  return session === undefined ? null : says(repliedText(session, request, language));
}

/** What helpers report, to whoever spawned them. */
export function isArrival({ source, before, isWoken }: Conversation, isUnderstood: boolean): boolean {
  const hasSpawned = before.some(({ called }) => called.includes("sessions_spawn"));
  if (!hasSpawned) return false;
  if (isWoken && !isUnderstood) return true;
  if (source === null) return false;
  const isChild = before.some(
    ({ role, text }) => role === "tool" && source.session !== "" && text.includes(source.session),
  );
  return isChild || /spawn|subagent|announce/.test(source.tool);
}

export function arrived({ request, spawned }: Conversation, language: Language): Reply {
  return says(arrivalsText(request, spawned, language));
}

/** Told that it is one; that there are such is said to others too. */
const childSystem = /\byou are (?:a|an|the) [*_]{0,3}sub-?agent|^#{1,6} sub-?agent/im;

/** Whoever was spawned has a task, in whatever words. */
export function isChild({ system, source }: Conversation): boolean {
  return source?.tool === "sessions_spawn" || childSystem.test(system.slice(0, 20_000));
}
