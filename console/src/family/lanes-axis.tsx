import { duration } from "../ui/time.ts";
import styles from "./lanes-axis.module.css";
import type { Stretch, TimeScale } from "./time-scale.ts";

/** The times above the lanes, and the folds. Pressing a fold opens or closes it. */
export function LanesAxis({
  title,
  scale,
  left,
  width,
  folds,
  unfolded,
  onToggle,
}: {
  readonly title: string;
  readonly scale: TimeScale;
  readonly left: number;
  readonly width: number;
  readonly folds: readonly Stretch[];
  readonly unfolded: ReadonlySet<number>;
  readonly onToggle: (from: number) => void;
}) {
  const isVisible = (x: number) => x > -100 && x < width + 20;
  return (
    <div className={styles.axis}>
      <span className={styles.title}>{title}</span>
      <div className={styles.times}>
        {scale
          .ticks(left - 100, left + width + 20)
          .map((tick) => ({ ...tick, x: tick.x - left }))
          .map(({ x, text, isStart }) => (
            <span
              key={`${text} ${x}`}
              className={styles.tick}
              data-start={isStart || undefined}
              style={{ left: x }}
            >
              {text}
            </span>
          ))}
        {folds.map(({ from, to }) => {
          const isOpen = unfolded.has(from);
          const x = scale.middleOf({ from, to }) - left;
          if (!isVisible(x)) return null;
          const length = duration(to - from);
          return (
            <button
              key={from}
              type="button"
              className={styles.fold}
              style={{ left: x }}
              aria-expanded={isOpen}
              title={isOpen ? `Collapse ${length} of idle time` : `Show ${length} of idle time`}
              aria-label={isOpen ? `Collapse ${length} of idle time` : `Show ${length} of idle time`}
              onClick={() => onToggle(from)}
            >
              {isOpen ? `fold ${length}` : length}
            </button>
          );
        })}
      </div>
    </div>
  );
}
