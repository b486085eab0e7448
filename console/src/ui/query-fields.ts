import { useEffect, useEffectEvent, useRef, useState } from "react";
import { useSearchParams } from "wouter";

type Changes = Readonly<Record<string, string | null>>;

interface ChangeOptions {
  /** Whether the back button skips the URL before the change. */
  readonly replace?: boolean;
}

/** The URL's query and a function that changes some of its fields. `null` removes a field. */
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
 * A value that changes immediately on the page and is written to the URL after a pause. Without the pause, every letter
 * would cause a read, and a key that is held down would change the URL more often than browsers allow. If `value`
 * changes for another reason, it replaces the displayed value.
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
