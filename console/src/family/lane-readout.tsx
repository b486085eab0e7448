import type { ReactNode } from "react";
import styles from "./lane-readout.module.css";
import type { Mark } from "./lanes.ts";
import { factsOf } from "./lanes.ts";

const kinds = [
  ["spawn", "spawn"],
  ["send", "message"],
  ["reply", "reply"],
  ["announce", "result"],
  ["fork", "fork"],
] as const;
const tones = [
  ["waiting", "waiting"],
  ["needs-you", "needs you"],
  ["failed", "failed"],
] as const;

/**
 * The line below the lanes. Describes the mark under the pointer or the focus. If there is none, explains the marks.
 */
export function LaneReadout({
  mark,
  isCompact,
  children,
}: {
  readonly mark: Mark | null;
  readonly isCompact: boolean;
  readonly children: ReactNode;
}) {
  return (
    <footer className={styles.readout}>
      {mark === null ? (
        isCompact ? (
          <span className={styles.hint}>Point to or focus a mark to read it.</span>
        ) : (
          <Legend />
        )
      ) : (
        <p className={styles.text}>
          <span className={styles.title}>
            {mark.title} <span className={styles.facts}>{factsOf(mark)}</span>
          </span>
          <span className={styles.preview} dir="auto">
            {mark.preview}
          </span>
        </p>
      )}
      {children}
    </footer>
  );
}

function Legend() {
  return (
    <ul className={styles.legend} aria-label="Legend">
      <li>
        <svg width="10" height="18" aria-hidden>
          <path className={styles.input} d="M5 1V17" />
        </svg>
        input
      </li>
      {kinds.map(([kind, name]) => (
        <li key={kind}>
          <svg width="24" height="10" aria-hidden data-kind={kind}>
            {kind === "fork" && <path className={styles.line} d="M0 2.5H17" />}
            <path className={styles.line} d={kind === "fork" ? "M0 6.5H17" : "M0 5H17"} />
            <path
              className={styles.tip}
              d={kind === "send" || kind === "reply" ? "M17 5H23M17 1L23 5L17 9" : "M17 1v8L23 5Z"}
            />
          </svg>
          {name}
        </li>
      ))}
      {tones.map(([tone, name]) => (
        <li key={tone}>
          <span className={styles.swatch} data-tone={tone} aria-hidden />
          {name}
        </li>
      ))}
    </ul>
  );
}
