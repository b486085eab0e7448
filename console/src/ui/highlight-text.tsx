import { Fragment } from "react";

const maxMatches = 20;
const contextChars = 300;
const maxChars = 4000;

/**
 * The parts of a text that contain `words`, with every occurrence marked, ignoring case. A short text is shown in full.
 */
export function Highlight({ text, words }: { readonly text: string; readonly words: string }) {
  return (
    <div dir="auto" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
      {excerptAt(text, words).map((part, index) => (
        <Fragment key={index}>{index % 2 === 1 ? <mark>{part}</mark> : part}</Fragment>
      ))}
    </div>
  );
}

/** Like `splitAt`, but for a long text returns only the text around the first matches. */
export function excerptAt(text: string, words: string): string[] {
  if (text.length <= maxChars) return splitAt(text, words);
  const parts = splitAt(text, words, maxMatches);
  return parts.map((part, index) => {
    if (index % 2 === 1) return part;
    const isFirst = index === 0;
    const isLast = index === parts.length - 1;
    if (part.length <= contextChars * (isFirst || isLast ? 1 : 2)) return part;
    const before = isFirst ? "" : part.slice(0, contextChars);
    const after = isLast && !isFirst ? "" : part.slice(-contextChars);
    return `${before}…${after}`;
  });
}

/**
 * Returns the text between matches and the matches, alternately. The text after the last of `limit` matches is one
 * part.
 */
function splitAt(text: string, words: string, limit = Number.POSITIVE_INFINITY): string[] {
  if (words === "") return [text];
  // “İ” is the only letter that becomes longer in lowercase, which would shift positions.
  const lower = text.replaceAll("İ", "i").toLowerCase();
  const wanted = words.replaceAll("İ", "i").toLowerCase();
  const parts: string[] = [];
  let from = 0;
  for (
    let at = lower.indexOf(wanted);
    at >= 0 && parts.length < limit * 2;
    at = lower.indexOf(wanted, from)
  ) {
    parts.push(text.slice(from, at), text.slice(at, at + wanted.length));
    from = at + wanted.length;
  }
  return [...parts, text.slice(from)];
}
