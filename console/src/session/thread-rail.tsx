import { memo, useMemo } from "react";
import type { TreeEntry } from "../tree/tree-data.ts";
import type { Tree, TreeNode } from "../tree/tree-model.ts";
import { pathTo, previewOf } from "../tree/tree-model.ts";
import { useRoving } from "../ui/roving.ts";
import type { Fork } from "./forks.ts";
import { kindOfSender } from "./rows.ts";
import styles from "./thread-rail.module.css";

interface Crossing {
  readonly id: string;
  readonly kind: "user" | "session" | "compaction" | "summary" | "failed" | "fork";
  /** The position, from 0 at the first row to 1 at the last. */
  readonly at: number;
  readonly title: string;
}

const maxCrossings = 400;

/**
 * A branch as a thread from top to bottom, with marks for people, other sessions, summaries and failures. It shows the
 * whole branch, including pages that are not loaded.
 */
export const ThreadRail = memo(function ThreadRail({
  tree,
  leafId,
  forks,
  onTravel,
}: {
  readonly tree: Tree;
  /** The last entry of the branch. */
  readonly leafId: string | null;
  readonly forks: ReadonlyMap<string, Fork>;
  readonly onTravel: (id: string) => void;
}) {
  const crossings = useMemo(
    () => findCrossings(pathTo(leafId === null ? null : (tree.nodeAt.get(leafId) ?? null)), forks),
    [tree, leafId, forks],
  );
  const roving = useRoving(useMemo(() => crossings.map(({ id }) => id), [crossings]));
  return (
    <nav
      ref={roving.list}
      className={styles.rail}
      aria-label="Landmarks in the session"
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
          onClick={({ clientY, detail }) =>
            onTravel(detail === 0 ? id : nearest(roving.list.current, clientY))
          }
        />
      ))}
    </nav>
  );
});

/** Returns the mark that is nearest to a pointer, because marks can overlap, especially on a touchscreen. */
function nearest(rail: HTMLElement | null, y: number): string {
  const distance = (mark: Element) => {
    const { top, height } = mark.getBoundingClientRect();
    return Math.abs(top + height / 2 - y);
  };
  const marks = [...(rail?.querySelectorAll<HTMLElement>("[data-roving]") ?? [])];
  return marks.reduce((a, b) => (distance(b) < distance(a) ? b : a)).dataset.roving ?? "";
}

function findCrossings(path: readonly TreeNode[], forks: ReadonlyMap<string, Fork>): readonly Crossing[] {
  const last = Math.max(1, path.length - 1);
  const found = path.flatMap((node, index): Crossing[] => {
    const { id } = node.entry;
    const kind = forks.has(id) ? "fork" : crossingKind(node.entry);
    if (kind === null) return [];
    return [{ id, kind, at: index / last, title: `${names[kind]}: ${previewOf(node, 80)}` }];
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

function crossingKind({ type, role, provenanceKind, stopReason }: TreeEntry): Crossing["kind"] | null {
  if (type === "compaction") return "compaction";
  if (type === "branch_summary") return "summary";
  if (role === "assistant") return stopReason === "error" ? "failed" : null;
  if (role !== "user") return null;
  const kind = kindOfSender({ kind: provenanceKind });
  return kind === "system" ? null : kind;
}
