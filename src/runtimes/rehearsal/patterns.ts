/**
 * The pieces that what is understood is made of. Every repetition has a bound, and every pattern begins at the first
 * character: however long a request is and whatever stands in it, looking at it takes the same time.
 */

export const gap = "\\s{1,9}";
export const space = "\\s{0,9}";
export const comma = "[\\s,，:：]{0,9}";
export const end = "[\\s.。!！?？]{0,9}$";
export const number = "\\d{1,9}(?:\\.\\d{1,9})?|[a-z]{1,8}|[一二两三四五六七八九十几]";

/** A session by key, label or id, in quotes where it has blanks; whoever speaks is none. */
export const target = `(?!(?:me|us|you|the|a|an|your)\\b)(?:"(?<quoted>[^"]{1,512})"|“(?<quoted2>[^”]{1,512})”|(?<plain>[^\\s"“”「」,，]{1,512}))`;

/** In Chinese no blank has to follow. */
export const zhTarget = `(?![我你您他她它])(?:["“「](?<quoted>[^"”」]{1,512})["”」]|(?<plain>[A-Za-z0-9][\\w:.@/#-]{0,511})|(?<other>[^\\s，,：:"“「]{1,64})(?=[\\s，,：:]))`;

export function pattern(...parts: readonly string[]): RegExp {
  return new RegExp(`^(?:${parts.join("")})`, "iu");
}

/** The session that was named; without the colon or full stop that stands behind it. */
export function targetOf(groups: Readonly<Record<string, string | undefined>>): string | null {
  const quoted = groups.quoted ?? groups.quoted2;
  if (quoted !== undefined) return quoted.trim() || null;
  return (groups.plain ?? groups.other)?.replace(/[:.。!！?？]{1,9}$/u, "") || null;
}

const politeness = /^(?:please|could you|can you|would you|请你|请|麻烦你|麻烦|帮我)[\s,，]{0,9}/iu;

export function withoutPoliteness(text: string): string {
  const once = text.replace(politeness, "");
  return once === "" ? text : once.replace(politeness, "");
}

/** A text without an ending that only says what to do about it, and the ending. */
export function partEnding(text: string, ending: RegExp): readonly [string, RegExpExecArray | null] {
  const from = Math.max(0, text.length - 100);
  const found = ending.exec(text.slice(from));
  return found === null ? [text, null] : [text.slice(0, from + found.index).trimEnd(), found];
}
