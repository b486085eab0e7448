import { useMemo } from "react";
import { useCall } from "../connect/gateway.tsx";
import { EntryRow } from "../session/entry-row.tsx";
import { isShown, roleWord } from "../session/rows.ts";
import buttons from "../ui/button.module.css";
import { Choice } from "../ui/choice.tsx";
import { Kbd } from "../ui/keys.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { SessionPlaceProvider, useRoutePlace } from "../ui/session-head.tsx";
import styles from "./compare-view.module.css";
import type { Tree, TreeNode } from "./tree-model.ts";
import { compareBranches, previewOf, roleOf } from "./tree-model.ts";

interface CompareViewProps {
  readonly tree: Tree;
  readonly left: TreeNode;
  readonly right: TreeNode;
  readonly onChoose: (side: "left" | "right", id: string) => void;
  readonly onClose: () => void;
  readonly onRead: (node: TreeNode) => void;
}

/** Two branches side by side, starting after the last entry that they share. */
export function CompareView({ tree, left, right, onChoose, onClose, onRead }: CompareViewProps) {
  const {
    ancestor,
    left: ofLeft,
    right: ofRight,
  } = useMemo(() => compareBranches(left, right), [left, right]);
  const options = useMemo(() => {
    const ends = new Set([...tree.tips, ...(tree.leaf === null ? [] : [tree.leaf]), left, right]);
    return Object.fromEntries([...ends].map((tip) => [tip.entry.id, tipName(tip, tree)]));
  }, [tree, left, right]);
  return (
    <section className={styles.view} aria-label="Comparison of two branches">
      <header className={styles.head}>
        <p className={styles.shared}>
          {ancestor === null ? (
            "These branches have no entries in common."
          ) : (
            <>
              Both follow <span className={styles.role}>{roleWord(roleOf(ancestor))}</span> “
              <bdi>{previewOf(ancestor, 160)}</bdi>”
            </>
          )}
        </p>
        <button type="button" className={buttons.button} onClick={onClose}>
          Close <Kbd keys="Escape" />
        </button>
      </header>
      <div className={styles.columns}>
        {(
          [
            ["left", left, ofLeft],
            ["right", right, ofRight],
          ] as const
        ).map(([side, tip, nodes]) => (
          <div key={side} className={styles.column} data-active={tip === tree.leaf || undefined}>
            <div className={styles.choice}>
              <Choice
                label={side === "left" ? "Left" : "Right"}
                value={tip.entry.id}
                options={options}
                onChange={(id) => onChoose(side, id)}
              />
              <span className={styles.count}>
                {nodes.length === 1 ? "1 entry" : `${nodes.length} entries`}
              </span>
              <button type="button" className={buttons.button} data-look="quiet" onClick={() => onRead(tip)}>
                Read
              </button>
            </div>
            <BranchEntries tip={tip} ancestor={ancestor} nodes={nodes} />
          </div>
        ))}
      </div>
    </section>
  );
}

const maxEntries = 200;

/**
 * The full entries after the common ancestor. Shows only their first lines until the entries are loaded, or if they
 * cannot be read.
 */
function BranchEntries({
  tip,
  ancestor,
  nodes,
}: {
  readonly tip: TreeNode;
  readonly ancestor: TreeNode | null;
  readonly nodes: readonly TreeNode[];
}) {
  const place = useRoutePlace();
  const agentId = useCall("sessions.get", place, { staleMs: 60_000 }).data?.agentId ?? "agent";
  const page = useCall(
    "sessions.entries",
    {
      ...place,
      leafId: tip.entry.id,
      limit: maxEntries,
      ...(ancestor === null ? {} : { after: ancestor.entry.id }),
    },
    { isEnabled: nodes.length > 0, staleMs: 60_000 },
  );
  if (nodes.length === 0) return <p className={styles.note}>This branch has no separate entries.</p>;
  const wanted = new Set(nodes.map(({ entry }) => entry.id));
  const entries = page.data?.entries.filter((entry) => wanted.has(entry.id) && isShown(entry)) ?? [];
  return (
    <SessionPlaceProvider value={place}>
      <div className={styles.entries}>
        {entries.length > 0
          ? entries.map((entry) => (
              <EntryRow key={entry.id} entry={entry} agentId={agentId} highlight="" isTarget={false} />
            ))
          : nodes.slice(0, maxEntries).map((node) => (
              <p key={node.entry.id} className={styles.preview}>
                <span className={styles.role}>{roleWord(roleOf(node))}</span>{" "}
                <bdi>{previewOf(node, 200)}</bdi>
              </p>
            ))}
        {(page.data?.hasLater ?? nodes.length > maxEntries) && (
          <p className={styles.note}>More entries follow. Read the branch to see them.</p>
        )}
      </div>
    </SessionPlaceProvider>
  );
}

function tipName(tip: TreeNode, { leaf }: Tree): string {
  const name = tip.entry.label === undefined ? previewOf(tip, 60) : oneLine(tip.entry.label, 60);
  return tip === leaf ? `Active: ${name}` : name;
}
