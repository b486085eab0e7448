import { X } from "lucide-react";
import type { ReactNode } from "react";
import { useMemo, useState } from "react";
import { errorText } from "../connect/gateway.tsx";
import buttons from "./button.module.css";
import { Kbd, useKeys } from "./keys.tsx";
import styles from "./selection.module.css";

export interface Selection {
  readonly ids: ReadonlySet<string>;
  toggle(id: string): void;
  /** Selects all of these rows, or deselects them if all are already selected. */
  toggleAll(ids: readonly string[]): void;
  clear(): void;
}

/** The selected rows. Rows that are no longer shown are not selected either. */
export function useSelection(shown: readonly string[]): Selection {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const ids = useMemo(() => new Set(shown.filter((id) => chosen.has(id))), [shown, chosen]);
  return {
    ids,
    toggle: (id) =>
      setChosen((before) => {
        const next = new Set(before);
        if (!next.delete(id)) next.add(id);
        return next;
      }),
    toggleAll: (all) =>
      setChosen((before) => {
        const isRemoving = all.every((id) => before.has(id));
        const rest = [...before].filter((id) => !all.includes(id));
        return new Set(isRemoving ? rest : [...rest, ...all]);
      }),
    clear: () => setChosen(new Set()),
  };
}

/** The check box for a group of rows. */
export function SelectAll({
  name,
  ids,
  selection,
}: {
  readonly name: string;
  readonly ids: readonly string[];
  readonly selection: Selection;
}) {
  const count = ids.filter((id) => selection.ids.has(id)).length;
  return (
    <input
      type="checkbox"
      className={styles.all}
      aria-label={`Select all: ${name}`}
      checked={count > 0 && count === ids.length}
      ref={(box) => {
        if (box !== null) box.indeterminate = count > 0 && count < ids.length;
      }}
      onChange={() => selection.toggleAll(ids)}
    />
  );
}

interface SelectionBarProps {
  readonly selection: Selection;
  readonly error: string | null;
  readonly onDismiss: () => void;
  /** The result of the action on the previously selected rows. */
  readonly notice?: ReactNode;
  readonly children: ReactNode;
}

/** Shown below the list, so that no row moves when the bar appears. */
export function SelectionBar({ selection, error, onDismiss, notice, children }: SelectionBarProps) {
  const count = selection.ids.size;
  useKeys({ Escape: count > 0 ? selection.clear : null });
  const hasNotice = count === 0 && Boolean(notice);
  if (count === 0 && error === null && !hasNotice) return null;
  return (
    <div className={styles.bar} role="group" aria-label="Selected rows">
      {error !== null && (
        <p className={styles.error} role="alert">
          {error}
          <button
            type="button"
            className={buttons.button}
            data-look="icon"
            aria-label="Dismiss"
            onClick={onDismiss}
          >
            <X size={13} />
          </button>
        </p>
      )}
      {hasNotice && notice}
      {count > 0 && (
        <>
          <span className={styles.count}>{count} selected</span>
          {children}
          <button type="button" className={buttons.button} data-look="quiet" onClick={selection.clear}>
            Clear <Kbd keys="Escape" />
          </button>
        </>
      )}
    </div>
  );
}

const maxCalls = 4;

/**
 * Applies the same action to every item, a few at a time, and reports failures. Resolves to the items for which it
 * succeeded.
 */
export function useForEach<T>() {
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const forEach = async (items: readonly T[], act: (item: T) => Promise<unknown>): Promise<readonly T[]> => {
    setIsBusy(true);
    setError(null);
    const failures = new Map<T, unknown>();
    const left = items.values();
    const work = async () => {
      for (const item of left) await act(item).catch((reason: unknown) => failures.set(item, reason));
    };
    await Promise.all(Array.from({ length: maxCalls }, work));
    setIsBusy(false);
    const [first] = failures.values();
    if (failures.size > 0) {
      const count = items.length === 1 ? "" : `${failures.size} of ${items.length} failed. `;
      setError(`${count}${errorText(first)}`);
    }
    return items.filter((item) => !failures.has(item));
  };
  return { isBusy, error, clearError: () => setError(null), forEach };
}
