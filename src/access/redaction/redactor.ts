import { mapStrings } from "./map-strings.ts";
import { findSecretPart } from "./named-secrets.ts";
import { scan } from "./scan.ts";
import { mask, needMore } from "./secret-matches.ts";
import { keyKind, maxLookBack } from "./secret-names.ts";
import type { Redacted, UserRule } from "./user-rules.ts";
import { applyUserRules, compileUserRules, maxWindowLength } from "./user-rules.ts";

interface RedactorOptions {
  /** Applied after the built-in rules. */
  readonly rules?: readonly UserRule[];
  /** Values that are secret wherever they occur. Values with fewer than six characters are ignored. */
  readonly secrets?: Iterable<string>;
}

/** Removes secrets from text in linear time. */
export interface Redactor {
  redact(text: string): Redacted;
  /** Redacts every string in a value. For a string in a field such as `password`, the field name is also considered. */
  redactJson(value: unknown): { readonly value: unknown; readonly count: number };
  stream(): RedactionStream;
}

/** Throws `invalid_arguments` for a user rule that cannot be used. */
export function createRedactor({ rules = [], secrets = [] }: RedactorOptions = {}): Redactor {
  const values = new KnownValues(secrets);
  const userRules = compileUserRules(rules);
  const redact = (text: string): Redacted => {
    const first = values.isEmpty ? redactByRules(text) : redactWithKnown(text, values);
    if (userRules.length === 0) return first;
    const second = applyUserRules(userRules, first.text);
    return { text: second.text, count: first.count + second.count };
  };
  return {
    redact,
    redactJson: (value) => {
      let count = 0;
      const redacted = mapStrings(value, (text, key) => {
        const named = maskByName(text, key);
        const all = redact(named ?? text);
        count += all.count + (named === null ? 0 : 1);
        return all.text;
      });
      return { value: redacted, count };
    },
    stream: () => {
      const known = values.isEmpty ? [] : [createKnownStream(values), createRuleStream()];
      const lines = createLineStream((text) => applyUserRules(userRules, text).text);
      const user = userRules.length === 0 ? [] : [lines];
      return keepPairsWhole(chainStreams([createRuleStream(), ...known, ...user]));
    },
  };
}

function redactByRules(text: string): Redacted {
  const { text: after, count } = scan({ text, from: 0, lastEnd: -1, isWhole: true });
  return { text: count === 0 ? text : after, count };
}

/**
 * Rules run first because masking a known value such as "password" would hide a name from them. They run again if known
 * values were masked, because a mask might have ended a token.
 */
function redactWithKnown(text: string, values: KnownValues): Redacted {
  const first = redactByRules(text);
  const known = values.mask(first.text, true);
  if (known.count === 0) return first;
  const second = redactByRules(known.text);
  return { text: second.text, count: first.count + known.count + second.count };
}

/** Returns the text with the secret part masked, or `null` if the name does not indicate a secret. */
function maskByName(text: string, key: string | null): string | null {
  const kind = key === null ? null : keyKind(key);
  const part = kind === null ? null : findSecretPart(text, kind, "quoted");
  if (part === null) return null;
  return `${text.slice(0, part.from)}${mask(text.slice(part.from, part.to))}${text.slice(part.to)}`;
}

/** Redacts text that arrives in chunks. The concatenated output equals the redacted whole. */
export interface RedactionStream {
  /** Returns the text that can be released. The shortest tail that might still become a secret is held back. */
  push(chunk: string): string;
  end(): string;
}

const isHigh = (code: number) => code >= 0xd800 && code <= 0xdbff;

function createRuleStream(): RedactionStream {
  /** The text that rules can look back at and, from `from` on, the text that has not been decided yet. */
  let text = "";
  let from = 0;
  let lastEnd = -1;
  const step = (chunk: string, isWhole: boolean): string => {
    const all = text + chunk;
    const scanned = scan({ text: all, from, lastEnd, isWhole });
    const start = Math.max(0, scanned.heldFrom - maxLookBack);
    text = all.slice(start);
    from = scanned.heldFrom - start;
    lastEnd = scanned.lastEnd < start ? -1 : scanned.lastEnd - start;
    return scanned.text;
  };
  return { push: (chunk) => step(chunk, false), end: () => step("", true) };
}

function createKnownStream(values: KnownValues): RedactionStream {
  let held = "";
  const step = (chunk: string, isWhole: boolean): string => {
    const all = held + chunk;
    const { text, heldFrom } = values.mask(all, isWhole);
    held = all.slice(heldFrom);
    return text;
  };
  return { push: (chunk) => step(chunk, false), end: () => step("", true) };
}

function chainStreams(streams: readonly RedactionStream[]): RedactionStream {
  return {
    push: (chunk) => streams.reduce((text, stream) => stream.push(text), chunk),
    end: () => streams.reduce((text, stream) => stream.push(text) + stream.end(), ""),
  };
}

/** Passes whole lines to user rules, or one window of a longer line at a time. */
function createLineStream(apply: (text: string) => string): RedactionStream {
  let held = "";
  return {
    push: (chunk) => {
      held += chunk;
      let to = held.lastIndexOf("\n") + 1;
      while (held.length - to > maxWindowLength)
        to += isHigh(held.charCodeAt(to + maxWindowLength - 1)) ? maxWindowLength - 1 : maxWindowLength;
      const out = apply(held.slice(0, to));
      held = held.slice(to);
      return out;
    },
    end: () => {
      const out = apply(held);
      held = "";
      return out;
    },
  };
}

/** Never ends a chunk in the middle of a surrogate pair. */
function keepPairsWhole(inner: RedactionStream): RedactionStream {
  let half = "";
  return {
    push: (chunk) => {
      const all = half + inner.push(chunk);
      half = isHigh(all.charCodeAt(all.length - 1)) ? all.slice(-1) : "";
      return half === "" ? all : all.slice(0, -1);
    },
    end: () => half + inner.end(),
  };
}

/** Shorter values occur too often by chance. */
const minKnownLength = 6;
/** Only the start of a longer value is masked. Otherwise, a stream would hold back too much. */
const maxKnownLength = 4096;

/** Secrets known by value, including their JSON and URL encodings. */
class KnownValues {
  readonly #byInitial = new Map<number, readonly string[]>();

  constructor(values: Iterable<string>) {
    const all = new Set<string>();
    for (const value of values) for (const form of encodedForms(value)) all.add(form);
    for (const value of [...all].toSorted((a, b) => b.length - a.length || (a < b ? -1 : 1))) {
      const initial = value.charCodeAt(0);
      this.#byInitial.set(initial, [...(this.#byInitial.get(initial) ?? []), value]);
    }
  }

  get isEmpty(): boolean {
    return this.#byInitial.size === 0;
  }

  /**
   * Masks known values up to the first position where more text is needed to decide. Overlapping values are masked as
   * one.
   */
  mask(
    text: string,
    isWhole: boolean,
  ): { readonly text: string; readonly count: number; readonly heldFrom: number } {
    const parts: string[] = [];
    let count = 0;
    let done = 0;
    let at = 0;
    for (; at < text.length; at++) {
      const to = this.#endOf(text, at, isWhole);
      if (to === null) continue;
      if (to === needMore) break;
      parts.push(text.slice(done, at), mask(text.slice(at, to)));
      count++;
      done = to;
      at = to - 1;
    }
    parts.push(text.slice(done, at));
    return { text: parts.join(""), count, heldFrom: Math.min(at, text.length) };
  }

  /** Returns the end of the longest value that starts at `at`, extended by values that start inside it. */
  #endOf(text: string, at: number, isWhole: boolean): number | null | typeof needMore {
    let to = this.#longest(text, at, isWhole);
    if (to === null || to === needMore) return to;
    for (let inside = at + 1; inside < to; inside++) {
      const other = this.#longest(text, inside, isWhole);
      if (other === needMore) return needMore;
      if (other !== null && other > to) to = other;
    }
    return to;
  }

  #longest(text: string, at: number, isWhole: boolean): number | null | typeof needMore {
    const candidates = this.#byInitial.get(text.charCodeAt(at));
    if (candidates === undefined) return null;
    for (const value of candidates) {
      if (text.startsWith(value, at)) return at + value.length;
      const isCut = text.length - at < value.length && value.startsWith(text.slice(at));
      if (isCut && !isWhole) return needMore;
    }
    return null;
  }
}

function encodedForms(value: string): string[] {
  const trimmed = value.trim().slice(0, maxKnownLength).toWellFormed();
  const forms = [trimmed, JSON.stringify(trimmed).slice(1, -1), encodeURIComponent(trimmed)];
  return forms.filter((form) => trimmed.length >= minKnownLength && form.length >= minKnownLength);
}

const builtIn = createRedactor();

/** Redacts a single text. To redact several with the same user rules, create a redactor. */
export function redact(text: string, rules: readonly UserRule[] = []): Redacted {
  return (rules.length === 0 ? builtIn : createRedactor({ rules })).redact(text);
}
