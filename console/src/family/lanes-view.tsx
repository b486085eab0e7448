import { Maximize2, Minus, Plus } from "lucide-react";
import type { CSSProperties, KeyboardEvent } from "react";
import { memo, useEffect, useId, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import type { SessionPlace } from "../paths.ts";
import buttons from "../ui/button.module.css";
import { Kbd, useKeys } from "../ui/keys.tsx";
import { SessionName } from "../ui/session-head.tsx";
import { useSteady } from "../ui/steady.tsx";
import { useNow } from "../ui/use-now.ts";
import type { Family } from "./family-data.ts";
import { toneNames } from "./family-data.ts";
import { EdgeShape, SpanShape, ThreadLine } from "./lane-marks.tsx";
import { LaneReadout } from "./lane-readout.tsx";
import type { Lane, Mark } from "./lanes.ts";
import { hasOpenRuns, layOutLanes } from "./lanes.ts";
import { LanesAxis } from "./lanes-axis.tsx";
import styles from "./lanes-view.module.css";
import { nextMark, orderMarks, placeEdges } from "./place-marks.ts";
import { splitTime } from "./time-scale.ts";
import { useDrag, useSize, useViewport } from "./use-viewport.ts";

interface LanesViewProps {
  readonly family: Family;
  readonly place: SessionPlace;
  /** The runs that are waiting for approval, and the keys of their sessions. */
  readonly needsYou: ReadonlySet<string>;
  readonly isCompact?: boolean;
}

const namesWidth = 216;
const none: ReadonlySet<number> = new Set();

/** Every session in a family as a lane, its runs as spans, and messages between sessions as arrows. */
export function LanesView({ family, place, needsYou, isCompact = false }: LanesViewProps) {
  const view = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const { width: total, height: available } = useSize(view);
  const isNarrow = isCompact || total < 600;
  const width = Math.max(0, total - (isNarrow ? 0 : namesWidth));

  const now = useNow(hasOpenRuns(family));
  const layout = useMemo(() => layOutLanes(family, needsYou, now, place), [family, needsYou, now, place]);
  const steady = useSteady(layout.lanes);
  // A new lane is added at the end rather than between others.
  const lanes = useMemo(() => [...steady.items, ...steady.fresh], [steady.items, steady.fresh]);
  const laneHeight = isNarrow ? 44 : roomyHeight(available, lanes.length);
  const threadY = isNarrow ? 31 : laneHeight / 2;
  const [unfolded, setUnfolded] = useState(none);
  const stretches = useMemo(() => splitTime(layout.busy, unfolded), [layout.busy, unfolded]);
  const folds = useMemo(() => splitTime(layout.busy, none).filter(({ isFold }) => isFold), [layout.busy]);
  const viewport = useViewport(plot, stretches, width);
  const { scale, left, zoomBy, panBy, showAll, reveal } = viewport;
  const drag = useDrag(panBy);
  const toggleFold = (from: number) =>
    setUnfolded(
      (before) => new Set(before.has(from) ? [...before].filter((each) => each !== from) : [...before, from]),
    );

  const rows = useMemo(
    () => new Map(lanes.map((lane, index) => [lane.id, { lane, index, y: index * laneHeight + threadY }])),
    [lanes, laneHeight, threadY],
  );
  const x = (at: number) => Math.min(width + 60, Math.max(-60, scale.xOf(at) - left));
  const isVisible = (from: number, to: number) => x(to) > -60 && x(from) < width + 60;
  const edges = placeEdges(
    layout.edges.filter(({ leftAt, at, startedAt }) => isVisible(leftAt ?? at, startedAt ?? at)),
    rows,
    x,
    (at) => scale.isFolded(at + left),
  );
  const spans = layout.spans.filter(({ queuedAt, to }) => isVisible(queuedAt, to));

  const [preview, setPreview] = useState<Mark | null>(null);
  const marks = useMemo(() => orderMarks(layout, rows), [layout, rows]);
  const [focused, setFocused] = useState<string | null>(null);
  const focusedId = marks.some(({ id }) => id === focused)
    ? focused
    : (spans.at(-1)?.id ?? edges.at(-1)?.mark.id ?? null);
  const shouldFocus = useRef(false);
  useEffect(() => {
    if (!shouldFocus.current || focused === null) return;
    shouldFocus.current = false;
    plot.current
      ?.querySelector<SVGAElement>(`[data-mark="${CSS.escape(focused)}"]`)
      ?.focus({ preventScroll: false });
  });

  const focusedMark = marks.find(({ id }) => id === focusedId);
  const anchor = focusedMark === undefined ? width / 2 : Math.min(width, Math.max(0, x(focusedMark.at)));
  const zoomIn = () => zoomBy(1.5, anchor);
  const zoomOut = () => zoomBy(1 / 1.5, anchor);
  useKeys({ "+": zoomIn, "=": zoomIn, "-": zoomOut, "0": showAll }, { canRepeat: true });
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = /^Arrow(Left|Right|Up|Down)$/.exec(event.key)?.[1];
    if (event.key === "Escape") setPreview(null);
    else if (arrow !== undefined && event.shiftKey)
      panBy({ Left: -120, Right: 120, Up: 0, Down: 0 }[arrow] ?? 0);
    else if (arrow !== undefined) {
      const next = nextMark(marks, focusedId, arrow as "Left" | "Right" | "Up" | "Down");
      if (next === null) return;
      shouldFocus.current = true;
      setFocused(next.id);
      reveal(next.at);
    } else return;
    event.preventDefault();
  };

  const hatch = useId().replace(/[^\w-]/g, "");
  const height = lanes.length * laneHeight;
  const edgeOfFold = useMemo(() => zigzag(height), [height]);
  const handlers = { focusedId, onPreview: setPreview };
  return (
    <div
      ref={view}
      className={styles.view}
      data-narrow={isNarrow || undefined}
      data-compact={isCompact || undefined}
      onKeyDown={onKeyDown}
    >
      <div className={styles.scroller} {...steady.hold}>
        {/* A finger that starts on a name moves the lanes too: names lie over them where the page is narrow. */}
        <div className={styles.grid} style={{ height: height + 28 }} {...drag}>
          <LanesAxis
            title={`${lanes.length} ${lanes.length === 1 ? "session" : "sessions"}, ${layout.spans.length} ${layout.spans.length === 1 ? "run" : "runs"}`}
            scale={scale}
            left={left}
            width={width}
            folds={folds}
            unfolded={unfolded}
            onToggle={toggleFold}
          />
          <ul className={styles.names} aria-label="Sessions in the family">
            {lanes.map((lane) => (
              <LaneName key={lane.id} lane={lane} height={laneHeight} isOpen={lane.id === place.key} />
            ))}
          </ul>
          <div ref={plot} className={styles.plot}>
            <svg
              width={width}
              height={height}
              role="group"
              aria-label="Runs and messages by time"
              className={styles.svg}
            >
              <defs>
                <pattern
                  id={hatch}
                  width="5"
                  height="5"
                  patternUnits="userSpaceOnUse"
                  patternTransform="rotate(45)"
                >
                  <rect width="2.5" height="5" className={styles.hatch} />
                </pattern>
              </defs>
              {lanes.map(({ id }, index) => (
                <line
                  key={id}
                  className={styles.rule}
                  x1={0}
                  x2={width}
                  y1={(index + 1) * laneHeight - 0.5}
                  y2={(index + 1) * laneHeight - 0.5}
                />
              ))}
              {scale.pieces
                .filter((piece) => piece.isFold && isVisible(piece.from, piece.to))
                .map((piece) => (
                  <g
                    key={piece.from}
                    className={styles.fold}
                    onClick={() => toggleFold(piece.from)}
                    aria-hidden
                  >
                    <rect x={piece.x - left} width={piece.width} y={0} height={height} />
                    <path d={edgeOfFold} transform={`translate(${piece.x - left + 0.5})`} />
                    <path d={edgeOfFold} transform={`translate(${piece.x - left + piece.width - 0.5})`} />
                  </g>
                ))}
              {lanes.map((lane) => (
                <ThreadLine
                  key={lane.id}
                  lane={lane}
                  y={rows.get(lane.id)?.y ?? 0}
                  from={x(lane.from)}
                  to={x(lane.to)}
                  end={width}
                />
              ))}
              {spans.map((mark) => {
                const row = rows.get(mark.key);
                return (
                  row && (
                    <SpanShape
                      key={mark.id}
                      mark={mark}
                      thread={row.lane.thread}
                      y={row.y}
                      x={x}
                      hatch={hatch}
                      {...handlers}
                    />
                  )
                );
              })}
              {edges.map(({ mark, ...shape }) => (
                <EdgeShape key={mark.id} mark={mark} {...shape} {...handlers} />
              ))}
            </svg>
          </div>
        </div>
      </div>
      <LaneReadout mark={preview} isCompact={isCompact}>
        <span className={styles.zoom}>
          <button
            type="button"
            className={buttons.button}
            data-look={isNarrow ? "icon" : "quiet"}
            onClick={() => zoomBy(1 / 1.5)}
            disabled={viewport.isWhole}
            title="Zoom out"
            aria-label="Zoom out"
          >
            <Minus size={14} aria-hidden />
            {!isNarrow && <Kbd keys="-" />}
          </button>
          <button
            type="button"
            className={buttons.button}
            data-look={isNarrow ? "icon" : "quiet"}
            onClick={() => zoomBy(1.5)}
            title="Zoom in"
            aria-label="Zoom in"
          >
            <Plus size={14} aria-hidden />
            {!isNarrow && <Kbd keys="+" />}
          </button>
          <button
            type="button"
            className={buttons.button}
            data-look="quiet"
            onClick={showAll}
            title="Fit everything"
          >
            <Maximize2 size={13} aria-hidden />
            <span className={isNarrow ? "visually-hidden" : undefined}>Fit</span>
            {!isNarrow && <Kbd keys="0" />}
          </button>
        </span>
      </LaneReadout>
    </div>
  );
}

const LaneName = memo(function LaneName({
  lane,
  height,
  isOpen,
}: {
  readonly lane: Lane;
  readonly height: number;
  readonly isOpen: boolean;
}) {
  const { name, task, depth, thread, tone, href } = lane;
  return (
    <li style={{ height }} className={styles.arrival}>
      <Link
        href={href}
        className={styles.name}
        data-thread={thread}
        aria-current={isOpen ? "page" : undefined}
        style={{ "--depth": depth } as CSSProperties}
        title={task === "" ? name : `${name}: ${task}`}
      >
        <span className={styles.swatch} aria-hidden />
        <span className={styles.text}>
          <SessionName name={name} task={task} />
        </span>
        {tone !== null && tone !== "done" && (
          <span className={styles.tone} data-tone={tone}>
            {toneNames[tone].toLowerCase()}
          </span>
        )}
      </Link>
    </li>
  );
});

/** If there are only a few lanes, each one is taller. */
function roomyHeight(available: number, count: number): number {
  return Math.min(56, Math.max(36, Math.floor((available - 80) / Math.max(1, count) / 4) * 4));
}

function zigzag(height: number): string {
  const teeth = Array.from({ length: Math.ceil(height / 8) }, (_, index) => `l${index % 2 === 0 ? 3 : -3} 8`);
  return `M-1.5 0${teeth.join("")}`;
}
