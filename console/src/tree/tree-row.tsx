import { roleWord } from "../session/rows.ts";
import { oneLine } from "../ui/plain-text.ts";
import { entryTime, fullTime } from "../ui/time.ts";
import styles from "./tree-list.module.css";
import type { TreeRow } from "./tree-model.ts";
import { previewOf, roleOf } from "./tree-model.ts";

interface TreeRowViewProps {
  readonly id: string;
  readonly row: TreeRow;
  readonly siblings: number;
  readonly isCurrent: boolean;
  readonly isLeaf: boolean;
  readonly top: number;
  readonly height: number;
  readonly onChoose: () => void;
  readonly onOpen: () => void;
  readonly onSibling: (step: number) => void;
}

export function TreeRowView({ id, row, siblings, isCurrent, isLeaf, top, height, ...act }: TreeRowViewProps) {
  const { node, depth } = row;
  const { entry, isActive, position } = node;
  const place = { transform: `translateY(${top}px)`, height };
  if (row.kind === "stretch") {
    return (
      <div
        id={id}
        className={styles.row}
        role="treeitem"
        aria-level={depth + 1}
        aria-expanded={row.isOpen}
        aria-selected={isCurrent}
        data-active={isActive || undefined}
        style={place}
        tabIndex={-1}
        onClick={act.onChoose}
        onKeyDown={() => undefined}
      >
        <Gutter row={row} height={height} />
        <span className={styles.stretch}>
          {row.isOpen ? "Collapse" : "Show"} {row.count.toLocaleString("en")} entries
        </span>
      </div>
    );
  }
  const at = Date.parse(entry.timestamp);
  return (
    <div
      id={id}
      className={styles.row}
      role="treeitem"
      aria-level={depth + 1}
      aria-setsize={siblings}
      aria-posinset={position}
      aria-selected={isCurrent}
      data-active={isActive || undefined}
      data-entry-id={entry.id}
      style={place}
      tabIndex={-1}
      onClick={act.onChoose}
      onDoubleClick={act.onOpen}
      onKeyDown={() => undefined}
    >
      <Gutter row={row} height={height} />
      <span className={styles.role}>{roleWord(roleOf(node))}</span>
      {siblings > 1 && <Siblings position={position} count={siblings} onSibling={act.onSibling} />}
      <span className={styles.preview} dir="auto">
        {previewOf(node, 200) || "(empty)"}
      </span>
      {entry.label !== undefined && (
        <span className={styles.label} dir="auto">
          {oneLine(entry.label, 60)}
        </span>
      )}
      {isLeaf && <span className={styles.leaf}>leaf</span>}
      <time className={styles.time} dateTime={entry.timestamp} title={fullTime(at)}>
        {entryTime(at)}
      </time>
    </div>
  );
}

/** `‹2/3›` shows which of a fork's branches this is and links to its neighbors. */
function Siblings({
  position,
  count,
  onSibling,
}: {
  readonly position: number;
  readonly count: number;
  readonly onSibling: (step: number) => void;
}) {
  const step = (sign: string, by: number, isThere: boolean) => (
    <button
      type="button"
      tabIndex={-1}
      disabled={!isThere}
      aria-label={by < 0 ? "Previous branch" : "Next branch"}
      onClick={(event) => {
        event.stopPropagation();
        onSibling(by);
      }}
    >
      {sign}
    </button>
  );
  return (
    <span className={styles.siblings}>
      {step("‹", -1, position > 1)}
      {position}/{count}
      {step("›", 1, position < count)}
    </span>
  );
}

const columnWidth = 16;
const maxColumns = 10;

/** The threads to the left of a row: those that pass by, its own, and the point where it branched off. */
function Gutter({ row, height }: { readonly row: TreeRow; readonly height: number }) {
  const { node, lines, isBranchStart } = row;
  const skipped = Math.max(0, lines.length - maxColumns);
  const x = (column: number) => 12 + (column - skipped) * columnWidth + 0.5;
  const own = x(lines.length);
  const middle = height / 2;
  const isFirst = node.parent === null && !isBranchStart;
  const hasNext = node.children.length > 0;
  return (
    <svg className={styles.gutter} width={own + 12} height={height} aria-hidden>
      {lines.slice(skipped).map((isActive, index) => (
        <line
          key={index}
          x1={x(index + skipped)}
          x2={x(index + skipped)}
          y1={0}
          y2={height}
          data-active={isActive || undefined}
        />
      ))}
      {isBranchStart ? (
        <path
          d={`M${own - columnWidth} 0C${own - columnWidth} ${middle} ${own} ${middle - 8} ${own} ${middle}`}
        />
      ) : (
        !isFirst && <line x1={own} x2={own} y1={0} y2={middle} data-active={node.isActive || undefined} />
      )}
      {hasNext && (
        <line
          x1={own}
          x2={own}
          y1={middle}
          y2={height}
          data-active={node.children.some(({ isActive }) => isActive) || undefined}
        />
      )}
      {row.kind === "stretch" ? (
        <path className={styles.fold} d={`M${own - 5} ${middle - 4}l10 3l-10 3l10 3`} />
      ) : (
        <Glyph role={roleOf(node)} x={own} y={middle} />
      )}
    </svg>
  );
}

/** Each role has a different shape. */
function Glyph({ role, x, y }: { readonly role: string; readonly x: number; readonly y: number }) {
  if (role === "user")
    return <rect className={styles.glyph} x={x - 4} y={y - 4} width={8} height={8} data-filled />;
  if (role === "compaction" || role === "branch_summary")
    return <rect className={styles.glyph} x={x - 6} y={y - 3} width={12} height={6} />;
  if (role === "assistant") return <circle className={styles.glyph} cx={x} cy={y} r={4} />;
  return <line className={styles.tick} x1={x - 4} x2={x + 4} y1={y} y2={y} />;
}
