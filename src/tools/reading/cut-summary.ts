import type { Redactor } from "../../access/redaction/redactor.ts";
import { cutText } from "../../core/text.ts";

const longest = 200;

/**
 * A text for one line of a list, redacted. A summary that was cut before it came here (`…` at its end) may end in a piece
 * of a secret that nobody can tell any more: its last word goes.
 */
export function cutSummary(text: string, redactor: Pick<Redactor, "redact">): string {
  const whole = text.endsWith("…") ? `${text.slice(0, -1).replace(/[\x21-\x7e]+$/, "")}…` : text;
  const safe = redactor.redact(whole).text;
  return safe.length <= longest ? safe : `${cutText(safe, longest - 1)}…`;
}
