import { ChevronDown, ChevronUp, X } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import type { Transcript } from "../live/transcript.ts";
import { isTyping } from "../ui/keys.ts";
import styles from "./find-bar.module.css";
import { rowText } from "./rows.ts";
import type { Item } from "./transcript-view.tsx";

export interface Find {
  readonly isOpen: boolean;
  readonly words: string;
  readonly count: number;
  /** Counted from 1; 0 without a match. */
  readonly position: number;
  readonly target: { readonly id: string } | null;
  readonly isLoading: boolean;
  readonly open: () => void;
  readonly close: () => void;
  readonly search: (words: string) => void;
  readonly step: (by: 1 | -1) => void;
}

/** Find in the whole session: the browser's own search sees only the rows that are mounted. */
export function useFind(items: readonly Item[], transcript: Transcript): Find {
  const [isOpen, setIsOpen] = useState(false);
  const [words, setWords] = useState("");
  const [at, setAt] = useState<{ readonly id: string } | null>(null);
  const [isLoading, setIsLoading] = useState(false);

  const matches = useMemo(() => {
    const wanted = words.toLowerCase();
    if (!isOpen || wanted === "") return [];
    return items
      .filter((item) => item.kind === "entry" && rowText(item.entry).toLowerCase().includes(wanted))
      .map(({ id }) => id);
  }, [items, words, isOpen]);
  const index = at === null ? -1 : matches.indexOf(at.id);

  useEffect(() => {
    if (!isOpen) return;
    const loading = new AbortController();
    setIsLoading(true);
    void transcript.loadAll(loading.signal).finally(() => setIsLoading(false));
    return () => loading.abort();
  }, [isOpen, transcript]);

  useEffect(() => {
    if (matches.length > 0 && index < 0) setAt({ id: matches[matches.length - 1] as string });
  }, [matches, index]);

  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      const isFind = event.key.toLowerCase() === "f" && (event.ctrlKey || event.metaKey);
      if (isFind || (event.key === "/" && !isTyping(event))) {
        event.preventDefault();
        setIsOpen(true);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);

  return {
    isOpen,
    words,
    count: matches.length,
    position: index + 1,
    target: isOpen ? at : null,
    isLoading,
    open: () => setIsOpen(true),
    close: () => {
      setIsOpen(false);
      setAt(null);
    },
    search: (next) => {
      setWords(next);
      setAt(null);
    },
    step: (by) => {
      if (matches.length === 0) return;
      const next = (index + by + matches.length) % matches.length;
      setAt({ id: matches[next] as string });
    },
  };
}

export function FindBar({ find }: { readonly find: Find }) {
  return (
    <div className={styles.bar} role="search">
      <input
        autoFocus
        type="search"
        value={find.words}
        aria-label="Find in session"
        placeholder="Find in session"
        onChange={({ target }) => find.search(target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") find.close();
          if (event.key === "Enter") find.step(event.shiftKey ? 1 : -1);
        }}
      />
      <span aria-live="polite">
        {find.words === ""
          ? ""
          : find.count === 0
            ? find.isLoading
              ? "Reading…"
              : "No match"
            : `${find.position} of ${find.count}`}
      </span>
      <button type="button" aria-label="Earlier match" onClick={() => find.step(-1)}>
        <ChevronUp size={15} />
      </button>
      <button type="button" aria-label="Later match" onClick={() => find.step(1)}>
        <ChevronDown size={15} />
      </button>
      <button type="button" aria-label="Close" onClick={find.close}>
        <X size={15} />
      </button>
    </div>
  );
}
