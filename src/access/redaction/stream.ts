import { lookBack } from "./keyed.ts";
import type { KnownValues } from "./known-values.ts";
import { scan } from "./scan.ts";
import { longestWindow } from "./user-rules.ts";

/** A text that comes in pieces; what is given out, one after the other, is the redacted whole. */
export interface RedactionStream {
  /** What can be given out now; the shortest tail that could still become a secret is held back. */
  push(chunk: string): string;
  /** The rest. */
  end(): string;
}

const isHigh = (code: number) => code >= 0xd800 && code <= 0xdbff;

/** Our own rules on a stream. */
export function ruleStream(): RedactionStream {
  /** What rules may look back at, and behind `from` what is not decided yet. */
  let text = "";
  let from = 0;
  let lastEnd = -1;
  const step = (chunk: string, isWhole: boolean): string => {
    const all = text + chunk;
    const scanned = scan({ text: all, from, lastEnd, isWhole });
    const start = Math.max(0, scanned.heldFrom - lookBack);
    text = all.slice(start);
    from = scanned.heldFrom - start;
    lastEnd = scanned.lastEnd < start ? -1 : scanned.lastEnd - start;
    return scanned.text;
  };
  return { push: (chunk) => step(chunk, false), end: () => step("", true) };
}

/** Known values on a stream. */
export function knownStream(values: KnownValues): RedactionStream {
  let held = "";
  const step = (chunk: string, isWhole: boolean): string => {
    const all = held + chunk;
    const { text, heldFrom } = values.mask(all, isWhole);
    held = all.slice(heldFrom);
    return text;
  };
  return { push: (chunk) => step(chunk, false), end: () => step("", true) };
}

/** One behind the other. */
export function inTurn(streams: readonly RedactionStream[]): RedactionStream {
  return {
    push: (chunk) => streams.reduce((text, stream) => stream.push(text), chunk),
    end: () => streams.reduce((text, stream) => stream.push(text) + stream.end(), ""),
  };
}

/** Rules of the user's on a stream: they see whole lines, or as much of one as they ever see. */
export function lineStream(apply: (text: string) => string): RedactionStream {
  let held = "";
  return {
    push: (chunk) => {
      held += chunk;
      let to = held.lastIndexOf("\n") + 1;
      while (held.length - to > longestWindow)
        to += isHigh(held.charCodeAt(to + longestWindow - 1)) ? longestWindow - 1 : longestWindow;
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

/** Never ends a piece in the middle of a surrogate pair. */
export function wholeCharacters(inner: RedactionStream): RedactionStream {
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
