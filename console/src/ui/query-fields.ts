import { useEffect, useEffectEvent, useRef, useState } from "react";
import { useSearchParams } from "wouter";

type Changes = Readonly<Record<string, string | null>>;

interface ChangeOptions {
  /** The back button skips the address before the change. */
  readonly replace?: boolean;
}

/** The query of the address, and how to change some of its fields. `null` removes a field. */
export function useQueryFields(): readonly [
  query: URLSearchParams,
  change: (changes: Changes, options?: ChangeOptions) => void,
] {
  const [query, setQuery] = useSearchParams();
  const change = (changes: Changes, options: ChangeOptions = {}) =>
    setQuery((before) => {
      const next = new URLSearchParams(before);
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) next.delete(name);
        else next.set(name, value);
      }
      return next;
    }, options);
  return [query, change];
}

/**
 * A value that changes at once on the page and is written after a pause, because a reading per letter would be too much, and
 * browsers refuse to change the address with every press of a key that is held. Another value from outside replaces it.
 */
export function useDelayedField<T>(
  value: T,
  write: (value: T) => void,
  delayMs = 200,
): readonly [shown: T, change: (value: T) => void] {
  const [shown, setShown] = useState(value);
  const written = useRef(value);
  useEffect(() => {
    if (value === written.current) return;
    written.current = value;
    setShown(value);
  }, [value]);
  const writeShown = useEffectEvent(() => {
    if (shown === written.current) return;
    written.current = shown;
    write(shown);
  });
  useEffect(() => {
    const timer = setTimeout(() => writeShown(), delayMs);
    return () => clearTimeout(timer);
  }, [shown, delayMs]);
  return [shown, setShown];
}
