/** A reply that ends an exchange. */
export const replySkip = "REPLY_SKIP";
/** A reply from an agent that has nothing to announce. */
export const announceSkip = "ANNOUNCE_SKIP";

/** The text that previews show instead of a control word. */
export const noReply = "(no reply)";

/** Whether a reply is a control word. Control words are never sent to a channel. */
export function isSilentReply(text: string): boolean {
  const word = text.trim();
  return word === replySkip || word === announceSkip;
}

// The end of a long message might be missing.
const fences = /^(?<fence>`{3,}|~{3,})\n(?<quoted>[\s\S]*?)(?:\n\k<fence>$|$(?![\s\S]))/gm;
const labelInHeader =
  /^A session that you spawned has ended: \S+ \(label: "(?<label>(?:[^"\\]|\\["\\])*)"\)$/m;

/**
 * Returns the parts of a message from another session that people want to see: the label of the session that ended, if
 * it has one, and what that session wrote, without the text that Skein adds for the model. Returns `null` if the
 * message contains no quoted text.
 *
 * @example
 * ```ts
 * import { readAnnouncement } from "skein/client";
 * const message = "The session scout has ended its turn.\n~~~\nTwelve rooms.\n~~~";
 * console.log(readAnnouncement(message)?.reply); // Twelve rooms.
 * ```
 */
export function readAnnouncement(text: string): { readonly label: string; readonly reply: string } | null {
  const found = [...text.matchAll(fences)];
  if (found.length === 0) return null;
  // The quoted text could also contain a header.
  const header = text.slice(0, found[0]?.index);
  const label = labelInHeader.exec(header)?.groups?.label ?? "";
  const replies = found.map(({ groups }) => groups?.quoted ?? "").filter((each) => !isSilentReply(each));
  return {
    label: label.replace(/\\(.)/g, "$1"),
    // In a short exchange, the first reply is also the last message, so it is shown once.
    reply: replies.length === 0 ? noReply : [...new Set(replies)].join("\n\n"),
  };
}
