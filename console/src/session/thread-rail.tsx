import { memo, useMemo } from "react";
import { previewLine } from "../ui/preview.ts";
import { useRoving } from "../ui/roving.ts";
import type { Fork } from "./forks.ts";
import { previewText, rowKind } from "./rows.ts";
import styles from "./thread-rail.module.css";
import type { EntryItem } from "./transcript-view.tsx";

interface Crossing {
  readonly id: string;
  readonly kind: "user" | "session" | "compaction" | "summary" | "failed" | "fork";
  /** The position, from 0 at the first row to 1 at the last. */
  readonly at: number;
  readonly title: string;
}

const maxCrossings = 400;

/** The session as a thread from top to bottom, with marks for people, other sessions, summaries and failures. */
export const ThreadRail = memo(function ThreadRail({
  items,
  forks,
  onTravel,
}: {
  readonly items: readonly EntryItem[];
  readonly forks: ReadonlyMap<string, Fork>;
  readonly onTravel: (id: string) => void;
}) {
  const crossings = useMemo(() => findCrossings(items, forks), [items, forks]);
  const roving = useRoving(useMemo(() => crossings.map(({ id }) => id), [crossings]));
  return (
    <nav
      ref={roving.list}
      className={styles.rail}
      aria-label="Landmarks of the session"
      onKeyDown={roving.onKeyDown}
    >
      {crossings.map(({ id, kind, at, title }) => (
        <button
          key={id}
          type="button"
          className={styles.crossing}
          data-kind={kind}
          style={{ top: `${(at * 100).toFixed(2)}%` }}
          title={title}
          aria-label={title}
          {...roving.item(id)}
          onClick={() => onTravel(id)}
        />
      ))}
    </nav>
  );
});

function findCrossings(items: readonly EntryItem[], forks: ReadonlyMap<string, Fork>): readonly Crossing[] {
  const last = Math.max(1, items.length - 1);
  const found = items.flatMap((item, index): Crossing[] => {
    const kind = forks.has(item.id) ? "fork" : crossingKind(item);
    if (kind === null) return [];
    return [
      {
        id: item.id,
        kind,
        at: index / last,
        title: `${names[kind]}: ${previewLine(previewText(item.entry), 80)}`,
      },
    ];
  });
  // More marks would overlap. Rare ones are kept.
  if (found.length <= maxCrossings) return found;
  const step = Math.ceil(found.length / maxCrossings);
  return found.filter(({ kind }, index) => kind !== "user" || index % step === 0);
}

const names: Record<Crossing["kind"], string> = {
  user: "You",
  session: "Another session",
  compaction: "Summary",
  summary: "Summary of a branch",
  failed: "Failed",
  fork: "Branches",
};

function crossingKind({ entry }: EntryItem): Crossing["kind"] | null {
  const kind = rowKind(entry);
  if (kind === "user" || kind === "session" || kind === "compaction" || kind === "summary") return kind;
  const hasFailed =
    entry.type === "message" && entry.message.role === "assistant" && entry.message.stopReason === "error";
  return hasFailed ? "failed" : null;
}
