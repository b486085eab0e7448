import { ChevronDown, ChevronUp } from "lucide-react";
import type { RefObject } from "react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { TranscriptReader } from "../live/transcript-reader.ts";
import { isInputMethod, Kbd, useKeys } from "../ui/keys.tsx";
import styles from "./find-bar.module.css";
import { searchText } from "./rows.ts";
import type { EntryItem, Target } from "./transcript-view.tsx";

export interface Find {
  readonly isOpen: boolean;
  readonly words: string;
  readonly matches: ReadonlySet<string>;
  /** Counted from 1. 0 if there is no match. */
  readonly position: number;
  readonly isLoading: boolean;
  readonly input: RefObject<HTMLInputElement | null>;
  readonly open: () => void;
  readonly close: () => void;
  readonly search: (words: string) => void;
  readonly step: (by: 1 | -1) => void;
}

const noMatches: ReadonlySet<string> = new Set();

/** Searches the whole session, because the browser's own search finds only mounted rows. */
export function useFind(
  items: readonly EntryItem[],
  reader: TranscriptReader,
  goTo: (target: Target) => void,
): Find {
  const [isOpen, setIsOpen] = useState(false);
  const [words, setWords] = useState("");
  const [at, setAt] = useState<string | null>(null);
  const [isLoading, setIsLoading] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const open = useCallback(() => {
    setIsOpen(true);
    input.current?.focus();
    input.current?.select();
  }, []);

  const matches = useMemo(() => {
    const wanted = words.toLowerCase();
    if (!isOpen || wanted === "") return noMatches;
    return new Set(items.filter(({ entry }) => searchText(entry).includes(wanted)).map(({ id }) => id));
  }, [items, words, isOpen]);
  const ids = useMemo(() => [...matches], [matches]);
  const index = at === null ? -1 : ids.indexOf(at);

  useEffect(() => {
    if (!isOpen) return;
    const loading = new AbortController();
    setIsLoading(true);
    void reader.loadAll(loading.signal).finally(() => setIsLoading(false));
    return () => loading.abort();
  }, [isOpen, reader]);

  const last = ids.at(-1);
  useEffect(() => {
    if (last === undefined || index >= 0) return;
    setAt(last);
    goTo({ id: last });
  }, [last, index, goTo]);

  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (
        event.key.toLowerCase() !== "f" ||
        !(event.ctrlKey || event.metaKey) ||
        event.shiftKey ||
        event.altKey
      )
        return;
      event.preventDefault();
      open();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [open]);
  useKeys({ "/": open });

  return {
    isOpen,
    words,
    matches,
    position: index + 1,
    isLoading,
    input,
    open,
    close: () => {
      setIsOpen(false);
      setAt(null);
    },
    search: (next) => {
      setWords(next);
      setAt(null);
    },
    step: (by) => {
      const next = ids[(index + by + ids.length) % ids.length];
      if (next === undefined) return;
      setAt(next);
      goTo({ id: next });
    },
  };
}

export function FindBar({ find }: { readonly find: Find }) {
  return (
    <div className={styles.bar} role="search">
      <input
        ref={find.input}
        autoFocus
        type="search"
        value={find.words}
        aria-label="Find in session"
        placeholder="Find in session"
        onChange={({ target }) => find.search(target.value)}
        onKeyDown={(event) => {
          if (isInputMethod(event)) return;
          if (event.key === "Escape") find.close();
          if (event.key === "Enter") find.step(event.shiftKey ? 1 : -1);
        }}
      />
      <span aria-live="polite">
        {find.words === ""
          ? ""
          : find.matches.size === 0
            ? find.isLoading
              ? "Loading…"
              : "No match"
            : `${find.position} of ${find.matches.size}`}
      </span>
      <button type="button" aria-label="Earlier match" onClick={() => find.step(-1)}>
        <ChevronUp size={15} /> <Kbd keys="Enter" />
      </button>
      <button type="button" aria-label="Later match" onClick={() => find.step(1)}>
        <ChevronDown size={15} /> <Kbd keys="Shift+Enter" />
      </button>
      <button type="button" onClick={find.close}>
        Close <Kbd keys="Escape" />
      </button>
    </div>
  );
}
