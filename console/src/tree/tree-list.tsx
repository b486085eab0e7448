import { useVirtualizer } from "@tanstack/react-virtual";
import type { KeyboardEvent } from "react";
import { useEffect, useId, useMemo, useRef, useState } from "react";
import { hasLetterKeys } from "../ui/keys.tsx";
import { rowHeight } from "../ui/theme.ts";
import styles from "./tree-list.module.css";
import type { Tree, TreeNode } from "./tree-model.ts";
import { findRows, siblingsOf } from "./tree-model.ts";
import { TreeRowView } from "./tree-row.tsx";

interface TreeListProps {
  readonly tree: Tree;
  readonly current: TreeNode;
  readonly onCurrent: (id: string) => void;
  readonly onOpen: (node: TreeNode) => void;
}

const none: ReadonlySet<string> = new Set();

/**
 * The rows of a tree. The list has the focus. Up and down move through it, and left and right move among the branches
 * of a fork.
 */
export function TreeList({ tree, current, onCurrent, onOpen }: TreeListProps) {
  const [opened, setOpened] = useState(none);
  // The entry that a link refers to is never inside a folded section.
  const [kept] = useState<ReadonlySet<string>>(() => new Set([current.entry.id]));
  const rows = useMemo(() => findRows(tree, opened, kept), [tree, opened, kept]);
  const [stretch, setStretch] = useState<string | null>(null);
  const currentId = rows.some(({ id }) => id === stretch) ? stretch : current.entry.id;
  const index = Math.max(
    0,
    rows.findIndex(({ id }) => id === currentId),
  );
  const scroller = useRef<HTMLDivElement>(null);
  const listId = useId();
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: rowHeight,
    getItemKey: (each) => rows[each]?.id ?? each,
    overscan: 16,
  });

  const hasScrolled = useRef(false);
  // Rows that arrive or are unfolded must not scroll the list.
  useEffect(() => {
    list.scrollToIndex(index, { align: hasScrolled.current ? "auto" : "center" });
    hasScrolled.current = true;
  }, [currentId]);

  const toggle = (id: string) =>
    setOpened(
      (before) => new Set(before.has(id) ? [...before].filter((each) => each !== id) : [...before, id]),
    );
  const go = (to: number) => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, to))];
    if (row === undefined) return;
    setStretch(row.kind === "stretch" ? row.id : null);
    if (row.kind === "entry") onCurrent(row.id);
    list.scrollToIndex(rows.indexOf(row), { align: "auto" });
  };
  const goToSibling = (step: number) => {
    const row = rows[index];
    if (row === undefined) return;
    if (row.kind === "stretch") return void (row.isOpen === step < 0 && toggle(row.id));
    const sibling = siblingsOf(row.node, tree)[row.node.position - 1 + step];
    if (sibling !== undefined) go(rows.findIndex(({ id }) => id === sibling.entry.id));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const key = event.key.length === 1 && !hasLetterKeys() ? "" : event.key;
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: 1,
      j: 1,
      ArrowUp: -1,
      k: -1,
      PageDown: 20,
      PageUp: -20,
    };
    const step = steps[key];
    const row = rows[index];
    if (step !== undefined) go(index + step);
    else if (key === "Home") go(0);
    else if (key === "End") go(rows.length - 1);
    else if (key === "ArrowLeft") goToSibling(-1);
    else if (key === "ArrowRight") goToSibling(1);
    else if (key === "Enter" && row?.kind === "entry") onOpen(row.node);
    else if ((key === "Enter" || key === " ") && row?.kind === "stretch") toggle(row.id);
    else return;
    event.preventDefault();
  };

  const rowId = (id: string) => `${listId}${id}`.replace(/\s/g, "_");
  return (
    <div
      ref={scroller}
      className={styles.scroller}
      role="tree"
      tabIndex={0}
      data-takes-focus
      aria-label="Entries on all branches"
      aria-activedescendant={rowId(rows[index]?.id ?? "")}
      onKeyDown={onKeyDown}
    >
      <div className={styles.rows} role="presentation" style={{ height: list.getTotalSize() }}>
        {list.getVirtualItems().map((item) => {
          const row = rows[item.index];
          return (
            row && (
              <TreeRowView
                key={item.key}
                id={rowId(row.id)}
                row={row}
                siblings={siblingsOf(row.node, tree).length}
                isCurrent={item.index === index}
                isLeaf={row.kind === "entry" && row.node === tree.leaf}
                top={item.start}
                height={item.size}
                onChoose={() => (row.kind === "stretch" ? toggle(row.id) : go(item.index))}
                onOpen={() => row.kind === "entry" && onOpen(row.node)}
                onSibling={(step) => {
                  const sibling = siblingsOf(row.node, tree)[row.node.position - 1 + step];
                  if (sibling !== undefined) go(rows.findIndex(({ id }) => id === sibling.entry.id));
                }}
              />
            )
          );
        })}
      </div>
    </div>
  );
}
