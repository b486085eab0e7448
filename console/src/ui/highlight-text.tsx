import { Fragment } from "react";
import { plainText } from "./plain-text.ts";

/** A text with every occurrence of `words` marked, ignoring case. */
export function Highlight({ text, words }: { readonly text: string; readonly words: string }) {
  return (
    <div style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
      {splitAt(text, words).map((part, index) => (
        <Fragment key={index}>{index % 2 === 1 ? <mark>{plainText(part)}</mark> : plainText(part)}</Fragment>
      ))}
    </div>
  );
}

/** Alternately what is between the matches, and a match. */
export function splitAt(text: string, words: string): string[] {
  if (words === "") return [text];
  const lower = text.toLowerCase();
  const wanted = words.toLowerCase();
  // Some letters change length in lower case; positions would then not fit.
  if (lower.length !== text.length) return [text];
  const parts: string[] = [];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), text.slice(at, at + wanted.length));
    from = at + wanted.length;
  }
  return [...parts, text.slice(from)];
}
