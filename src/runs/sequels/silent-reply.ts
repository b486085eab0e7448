/** Said by an agent that has nothing to add to an exchange; exactly this, and it is over. */
export const replySkip = "REPLY_SKIP";
/** Said by an agent that has nothing to announce; exactly this, and it stays silent. */
export const announceSkip = "ANNOUNCE_SKIP";

/** Whether a reply is a word between sessions, and goes to no channel. */
export function isSilentReply(text: string): boolean {
  const word = text.trim();
  return word === replySkip || word === announceSkip;
}

/** What a reply says to the other side of an exchange; `null`: nothing, and the exchange is over. */
export function saidIn(reply: string | undefined): string | null {
  if (reply === undefined) return null;
  const word = reply.trim();
  return word === "" || word === replySkip ? null : reply;
}
