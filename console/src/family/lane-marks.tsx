import type { EdgeMark, Lane, Mark, SpanMark } from "./lanes.ts";
import { factsOf } from "./lanes.ts";
import styles from "./lanes-view.module.css";
import type { PlacedEdge } from "./place-marks.ts";

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
  fromX,
  x,
  toX,
  fromY,
  toY,
  crossed,
  focusedId,
  onPreview,
}: MarkHandlers & PlacedEdge) {
  const down = Math.sign(toY - fromY);
  const tip = toX === null ? { x, y: toY - down * 6 } : { x: toX - 1, y: toY };
  const base = toX === null ? { x, y: tip.y - down * 6 } : { x: tip.x - 6, y: toY };
  const start = fromX === x ? `M${x} ${fromY + down * 3}` : `M${fromX + 3} ${fromY}H${x}`;
  return (
    <MarkLink mark={mark} thread={thread} tone={mark.edge} focusedId={focusedId} onPreview={onPreview}>
      <path
        className={styles.hit}
        d={`M${x - 5} ${fromY}H${x + 5}V${tip.y}H${x - 5}ZM${fromX} ${fromY - 5}H${x}v10H${fromX}ZM${x} ${tip.y - 5}H${tip.x}v10H${x}Z`}
      />
      {mark.edge === "fork" ? (
        [x - 1.5, x + 1.5].map((each) => (
          <path
            key={each}
            className={styles.edge}
            d={`M${each} ${fromY + down * 3}${weave(each, crossed, down)}V${base.y}`}
          />
        ))
      ) : (
        <path className={styles.edge} d={`${start}${weave(x, crossed, down)}V${base.y}H${base.x}`} />
      )}
      <circle className={styles.source} cx={fromX} cy={fromY} r={3} />
      <path className={styles.tip} d={tipPath(mark.edge, base, tip)} />
    </MarkLink>
  );
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Returns a closed tip for edges that start or end a session and an open one for messages. */
function tipPath(kind: EdgeMark["edge"], base: Point, tip: Point): string {
  const across = base.x === tip.x ? { x: 4, y: 0 } : { x: 0, y: 4 };
  const sides = [`${base.x - across.x} ${base.y - across.y}`, `${base.x + across.x} ${base.y + across.y}`];
  const head = `M${sides[0]}L${tip.x} ${tip.y}L${sides[1]}`;
  if (kind === "send" || kind === "reply") return `M${base.x} ${base.y}L${tip.x} ${tip.y}${head}`;
  return `${head}Z`;
}

/** The gaps in a vertical line, one at every thread that it passes under. */
function weave(x: number, crossed: readonly number[], down: number): string {
  const gaps = crossed.toSorted((a, b) => (a - b) * down).map((y) => `V${y - down * 4}M${x} ${y + down * 4}`);
  return gaps.join("");
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
