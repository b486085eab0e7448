import type { EdgeMark, Lane, Mark, SpanMark } from "./lanes.ts";
import { factsOf } from "./lanes.ts";
import styles from "./lanes-view.module.css";

/** The marks in the lanes. All coordinates are in pixels, relative to the visible area. */

interface MarkHandlers {
  readonly focusedId: string | null;
  readonly onPreview: (mark: Mark | null) => void;
}

const spanHeight = 10;
const minSpanWidth = 3;

export function ThreadLine({
  lane,
  y,
  from,
  to,
  end,
}: {
  readonly lane: Lane;
  readonly y: number;
  readonly from: number;
  readonly to: number;
  readonly end: number;
}) {
  return (
    <g data-thread={lane.thread} className={styles.arrival}>
      <line className={styles.idle} x1={to} x2={end} y1={y} y2={y} />
      <line className={styles.thread} x1={from} x2={to} y1={y} y2={y} />
      <line className={styles.thread} x1={from} x2={from} y1={y - 4} y2={y + 4} />
    </g>
  );
}

export function SpanShape({
  mark,
  thread,
  y,
  x,
  hatch,
  focusedId,
  onPreview,
}: MarkHandlers & {
  readonly mark: SpanMark;
  readonly thread: number;
  readonly y: number;
  readonly x: (at: number) => number;
  readonly hatch: string;
}) {
  const { from, to, queuedAt, tone, isOpen } = mark;
  const start = x(from ?? to);
  const end = Math.max(x(to), start + minSpanWidth);
  const isOutlined = tone === "aborted";
  const isWaiting = tone === "waiting" || tone === "needs-you";
  const top = y - spanHeight / 2;
  return (
    <MarkLink mark={mark} thread={thread} tone={tone} focusedId={focusedId} onPreview={onPreview}>
      <rect
        className={styles.hit}
        x={Math.min(x(queuedAt), start) - 2}
        y={y - 11}
        width={end - Math.min(x(queuedAt), start) + 4}
        height={22}
      />
      {start - x(queuedAt) > 2 && (
        <line className={styles.queued} x1={x(queuedAt)} x2={start} y1={y + 8} y2={y + 8} />
      )}
      {from !== null && (
        <rect className={styles.span} x={start} y={top} width={end - start} height={spanHeight} />
      )}
      {from !== null && isWaiting && (
        <rect fill={`url(#${hatch})`} x={start} y={top} width={end - start} height={spanHeight} />
      )}
      {from !== null && (isWaiting || isOutlined) && (
        <rect
          className={styles.outline}
          data-filled={isOutlined || undefined}
          x={start + 0.5}
          y={top + 0.5}
          width={Math.max(1, end - start - 1)}
          height={spanHeight - 1}
        />
      )}
      {mark.isFromOutside && (
        <line className={styles.input} x1={x(queuedAt)} x2={x(queuedAt)} y1={y - 9} y2={y + 9} />
      )}
      {tone === "failed" && <path className={styles.cross} d={`M${end - 3} ${top - 3}l6 6m0 -6l-6 6`} />}
      {isOpen && tone === "running" && (
        <line className={styles.head} x1={end} x2={end} y1={top - 3} y2={top + spanHeight + 3} />
      )}
    </MarkLink>
  );
}

export function EdgeShape({
  mark,
  thread,
  x,
  fromY,
  toY,
  crossed,
  focusedId,
  onPreview,
}: MarkHandlers & {
  readonly mark: EdgeMark;
  readonly thread: number;
  readonly x: number;
  readonly fromY: number;
  readonly toY: number;
  /** The lanes that the arrow passes under. */
  readonly crossed: readonly number[];
}) {
  const down = Math.sign(toY - fromY);
  const tip = toY - down * 6;
  const base = tip - down * 6;
  const line = weave(x, fromY + down * 3, base, crossed, down);
  return (
    <MarkLink mark={mark} thread={thread} tone={mark.edge} focusedId={focusedId} onPreview={onPreview}>
      <path className={styles.hit} d={`M${x - 5} ${fromY}h10V${tip}h-10Z`} />
      {mark.edge === "fork" ? (
        <>
          <path className={styles.edge} d={weave(x - 1.5, fromY + down * 3, base, crossed, down)} />
          <path className={styles.edge} d={weave(x + 1.5, fromY + down * 3, base, crossed, down)} />
        </>
      ) : (
        <path className={styles.edge} d={line} />
      )}
      <circle className={styles.source} cx={x} cy={fromY} r={3} />
      <path className={styles.tip} d={tipPath(mark.edge, x, base, tip)} />
    </MarkLink>
  );
}

/** Returns a closed tip for edges that start or end a session and an open one for messages. */
function tipPath(kind: EdgeMark["edge"], x: number, base: number, tip: number): string {
  if (kind === "send" || kind === "reply")
    return `M${x} ${base}V${tip}M${x - 4} ${base}L${x} ${tip}L${x + 4} ${base}`;
  return `M${x - 4} ${base}h8L${x} ${tip}Z`;
}

/** A vertical line with a gap at every thread that it passes under. */
function weave(x: number, from: number, to: number, crossed: readonly number[], down: number): string {
  const gaps = crossed.toSorted((a, b) => (a - b) * down).map((y) => `V${y - down * 4}M${x} ${y + down * 4}`);
  return `M${x} ${from}${gaps.join("")}V${to}`;
}

function MarkLink({
  mark,
  thread,
  tone,
  focusedId,
  onPreview,
  children,
}: MarkHandlers & {
  readonly mark: Mark;
  readonly thread: number;
  readonly tone: string;
  readonly children: React.ReactNode;
}) {
  return (
    <a
      href={`#${mark.href}`}
      className={styles.mark}
      data-mark={mark.id}
      data-thread={thread}
      data-tone={tone}
      tabIndex={mark.id === focusedId ? 0 : -1}
      aria-label={`${mark.title}, ${factsOf(mark)}. ${mark.preview}`}
      onPointerEnter={() => onPreview(mark)}
      onPointerLeave={() => onPreview(null)}
      onFocus={() => onPreview(mark)}
      onBlur={() => onPreview(null)}
    >
      {children}
    </a>
  );
}
