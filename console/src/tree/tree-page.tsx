import { useMemo } from "react";
import { useLocation } from "wouter";
import { errorText, useMay, useOffline } from "../connect/gateway.tsx";
import { sessionPath } from "../paths.ts";
import buttons from "../ui/button.module.css";
import { Kbd, useKeys } from "../ui/keys.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { useDelayedField, useQueryFields } from "../ui/query-fields.ts";
import { SessionViewPage, useRoutePlace } from "../ui/session-head.tsx";
import { CompareView } from "./compare-view.tsx";
import { EntryBar } from "./entry-bar.tsx";
import { useLeafMoves } from "./leaf-move.tsx";
import { useTree } from "./tree-data.ts";
import { TreeList } from "./tree-list.tsx";
import type { TreeNode } from "./tree-model.ts";
import { otherBranches, previewOf, tipOf } from "./tree-model.ts";
import styles from "./tree-page.module.css";

/** `/s/<key>/tree?user=&entry=&compare=&with=`: every branch of a session. */
export default function TreePage() {
  const place = useRoutePlace();
  const { status, error, tree, leafId, refresh } = useTree(place);
  const [query, change] = useQueryFields();
  const [, navigate] = useLocation();
  const { move, error: failure, ...moves } = useLeafMoves(place, leafId);
  const mayBranch = useMay("sessions.branch");
  const offline = useOffline();

  const [entryId, choose] = useDelayedField(query.get("entry"), (id) =>
    change({ entry: id }, { replace: true }),
  );
  const current =
    (entryId === null ? undefined : tree.nodes.get(entryId)) ?? tree.leaf ?? tree.roots[0] ?? null;
  const compared = tree.nodes.get(query.get("compare") ?? "");
  const against = tree.nodes.get(query.get("with") ?? "") ?? tree.leaf ?? undefined;
  const isComparing = compared !== undefined && against !== undefined;

  const continueFrom = (node: TreeNode) =>
    void moves.moveTo(node.entry.id, previewOf(node, 80)).then(refresh);
  const undo = move === null ? null : () => void moves.undo().then(refresh);
  const read = (node: TreeNode) => {
    // The link back leads to this entry.
    change({ entry: node.entry.id }, { replace: true });
    const branch = node.isActive ? undefined : tipOf(node).entry.id;
    navigate(sessionPath(place, "", { entry: node.entry.id, branch }));
  };
  const compare = (node: TreeNode) => change({ compare: tipOf(node).entry.id, with: null });
  const canCompare = (node: TreeNode) => tree.leaf !== null && tipOf(node) !== tree.leaf;

  const others = useMemo(() => otherBranches(tree), [tree]);
  const goToBranch = () => {
    const at = others.findIndex(({ entry }) => entry.id === current?.entry.id);
    const next = others[(at + 1) % others.length];
    if (next !== undefined) choose(next.entry.id);
  };
  useKeys({
    n: isComparing || others.length === 0 ? null : goToBranch,
    u: isComparing ? null : undo,
    b:
      current === null || isComparing || !mayBranch || current === tree.leaf
        ? null
        : () => continueFrom(current),
    c: current === null || isComparing || !canCompare(current) ? null : () => compare(current),
    Escape: isComparing ? () => change({ compare: null, with: null }) : null,
  });

  return (
    <SessionViewPage place={place} view="tree">
      <div className={styles.tree}>
        {move !== null && (
          <p className={styles.move} role="status">
            <span>The conversation continues from “{move.text}”.</span>
            <button type="button" className={buttons.button} onClick={() => undo?.()} {...offline}>
              Undo <Kbd keys="u" />
            </button>
          </p>
        )}
        {(failure !== null || (status === "ready" && error !== null)) && (
          <p className={styles.failure} role="alert">
            {failure ?? errorText(error)}
          </p>
        )}
        {status === "ready" && entryId !== null && !tree.nodes.has(entryId) && (
          <p className={styles.move} role="status">
            <span>The entry in this address is not in this session.</span>
          </p>
        )}
        {status === "failed" && error !== null ? (
          <ErrorNotice error={error} onRetry={() => void refresh()} />
        ) : status === "loading" ? (
          <Notice text="Loading the tree…" isBusy />
        ) : current === null ? (
          <Notice text="No messages yet. Each message, answer and branch of this session appears here." />
        ) : isComparing ? (
          <CompareView
            tree={tree}
            left={compared}
            right={against}
            onChoose={(side, id) => change({ [side === "left" ? "compare" : "with"]: id })}
            onClose={() => change({ compare: null, with: null })}
            onRead={read}
          />
        ) : (
          <>
            <p className={styles.summary}>
              <span>
                {tree.nodes.size.toLocaleString("en")} entries,{" "}
                {tree.tips.length === 1 ? "1 branch" : `${tree.tips.length} branches`}
              </span>
              {others.length > 0 && (
                <button type="button" className={buttons.button} data-look="quiet" onClick={goToBranch}>
                  Next branch <Kbd keys="n" />
                </button>
              )}
            </p>
            <TreeList tree={tree} current={current} onCurrent={choose} onOpen={read} />
            <EntryBar
              key={current.entry.id}
              node={current}
              tree={tree}
              onRead={() => read(current)}
              onCompare={canCompare(current) ? () => compare(current) : null}
              onContinue={mayBranch && current !== tree.leaf ? () => continueFrom(current) : null}
              onLabeled={() => void refresh()}
            />
          </>
        )}
      </div>
    </SessionViewPage>
  );
}
