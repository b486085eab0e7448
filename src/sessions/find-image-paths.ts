import { isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

/** An image path that the user typed. */
interface TypedPath {
  readonly typed: string;
  /** The absolute paths that it could refer to, most likely first. */
  readonly meant: readonly string[];
}

const endings = /(?<=[^/])\.(?:png|jpe?g|gif|webp)(?![a-z0-9_-])/gi;
const isPath = /(?<=[^/])\.(?:png|jpe?g|gif|webp)$/i;
/** The longest file extension plus one character of the name. */
const longestEnding = 6;
const closingOf: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "`": "`",
  "“": "”",
  "«": "»",
  "「": "」",
};
/** Characters that can precede a path. */
const before = new Set("([{<>}])@,;:!?=|*\"'`“«「、。，；：！？（）《》");
/** Excludes no-break spaces, because screenshot names contain them. */
const blanks = new Set(" \t\n\r\f\v\u3000");
const longestPath = 4096;
const maxPerWord = 20;
const maxGlued = 12;

/** Yields the distinct image paths in a text, in order. Takes linear time. */
export function* typedPaths(text: string, cwd: string, home: string): Generator<TypedPath> {
  const seen = new Set<string>();
  for (const forms of candidates(text)) {
    const [typed = ""] = forms;
    const key = forms.join("\0");
    if (seen.has(key)) continue;
    seen.add(key);
    const meant = forms.flatMap((form) => absolute(form, cwd, home) ?? []);
    if (meant.length > 0) yield { typed, meant: [...new Set(meant)] };
  }
}

/** Yields quoted strings, and words separated by whitespace. A backslash escapes the next character. */
function* candidates(text: string): Generator<string[]> {
  const next = new NextPlaces(text);
  for (let at = 0; at < text.length; ) {
    const quoted = quotedAt(text, at, next);
    if (quoted !== null) {
      yield [quoted, tailOf(quoted, (char) => blanks.has(char))];
      at += quoted.length + 2;
    } else if (before.has(text[at] as string) || blanks.has(text[at] as string)) at++;
    else {
      const end = endOfWord(text, at);
      if (end - at <= longestPath) yield* inWord(text.slice(at, end));
      at = end;
    }
  }
}

/** Finds the next occurrence of a character and caches it so that repeated lookups stay linear. */
class NextPlaces {
  readonly #text: string;
  readonly #known = new Map<string, number>();

  constructor(text: string) {
    this.#text = text;
  }

  after(char: string, at: number): number {
    const known = this.#known.get(char) ?? -1;
    if (known > at) return known;
    const found = this.#text.indexOf(char, at + 1);
    const place = found === -1 ? Number.POSITIVE_INFINITY : found;
    this.#known.set(char, place);
    return place;
  }
}

/** Returns quoted text on one line if all of it is a path. */
function quotedAt(text: string, at: number, next: NextPlaces): string | null {
  const mark = closingOf[text[at] as string];
  if (mark === undefined) return null;
  const end = next.after(mark, at);
  if (end - at > longestPath || next.after("\n", at) < end) return null;
  if (!isPath.test(text.slice(Math.max(at + 1, end - longestEnding), end))) return null;
  const inside = text.slice(at + 1, end);
  return isAddress(inside) ? null : inside;
}

/** Returns where a word ends. It can end before a quoted string that follows a delimiter, as in `src="…"`. */
function endOfWord(text: string, from: number): number {
  let at = from;
  while (at < text.length && !blanks.has(text[at] as string)) {
    at += text[at] === "\\" ? 2 : 1;
    if (closingOf[text[at] as string] !== undefined && before.has(text[at - 1] as string)) break;
  }
  return Math.min(at, text.length);
}

/**
 * For each file extension in the word, yields the word up to the extension, along with longer and shorter variants,
 * because a name might be joined to the text around it.
 */
function* inWord(word: string): Generator<string[]> {
  if (isAddress(word)) return;
  let [from, count] = [0, 0];
  for (const found of word.matchAll(endings)) {
    if (count++ === maxPerWord) return;
    const end = found.index + found[0].length;
    yield [...new Set(formsOf(word.slice(0, end), from).map((each) => each.replace(/\\(.)/gs, "$1")))];
    from = end;
  }
}

function formsOf(word: string, from: number): string[] {
  const url = word.toLowerCase().lastIndexOf("file://");
  if (url !== -1) return [word.slice(url)];
  const own = trimmed(word.slice(from));
  const whole = trimmed(word);
  const inside = tailOf(own, (char) => before.has(char));
  const latin = tailOf(inside, (char) => char > "~");
  // In scripts without spaces, a name can begin at any character.
  const glued = Array.from({ length: Math.min(maxGlued, inside.length - latin.length) }, (_, index) =>
    inside.slice(inside.length - latin.length - index - 1),
  );
  return [own, whole, inside, ...glued.toReversed(), latin];
}

/** Returns the text after the last matching character. */
function tailOf(part: string, isSuch: (char: string) => boolean): string {
  let from = part.length;
  while (from > 0 && !isSuch(part[from - 1] as string)) from--;
  return part.slice(from);
}

function trimmed(part: string): string {
  let from = 0;
  while (from < part.length && before.has(part[from] as string)) from++;
  return part.slice(from);
}

/** Whether a word is a URL that does not name a file. */
function isAddress(word: string): boolean {
  return /[a-z]:\/\//i.test(word) && !/file:\/\//i.test(word);
}

function absolute(path: string, cwd: string, home: string): string | null {
  if (path.includes("\0") || !isPath.test(path.slice(-longestEnding))) return null;
  if (/^file:\/\//i.test(path)) return ofUrl(path);
  if (path.startsWith("~/")) return join(home, path.slice(2));
  return isAbsolute(path) ? path : join(cwd, path);
}

/** Returns `null` if the URL is invalid or refers to another machine. */
function ofUrl(url: string): string | null {
  try {
    return fileURLToPath(url);
  } catch {
    return null;
  }
}
