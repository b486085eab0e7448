import { Link } from "wouter";
import type { SessionNames } from "../live/session-names.ts";
import { oneLine } from "../ui/plain-text.ts";
import { previewLine } from "../ui/preview.ts";
import { FullName } from "../ui/session-head.tsx";
import { threadOf } from "../ui/theme.ts";
import { ago, duration, fullTime, shortTime } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import styles from "./run-line.module.css";
import type { RunRow } from "./run-state.tsx";
import { isFailed, isOpen, kindWord, processName, StateMark } from "./run-state.tsx";
import { RunWhy } from "./run-why.tsx";

interface RunRowProps {
  readonly run: RunRow;
  readonly href: string;
  readonly names: SessionNames;
  readonly isSelected: boolean;
  readonly isShown: boolean;
  /** `true` if the run is no longer in the list but still has its position. */
  readonly isGone: boolean;
  readonly onToggle: () => void;
  readonly focus: { readonly tabIndex: number; readonly onFocus: () => void };
}

/** One run. For a waiting run, a second line explains why. */
export function RunLine({ run, href, names, isSelected, isShown, isGone, onToggle, focus }: RunRowProps) {
  const { sessionKey: key, sessionId, userId, why, preview } = run;
  const name = names.fullNameOf({ key, userId });
  return (
    <li
      className={styles.row}
      data-thread={threadOf(sessionId)}
      data-selected={isSelected || undefined}
      data-shown={isShown || undefined}
      data-gone={isGone || undefined}
    >
      <input
        type="checkbox"
        className={styles.check}
        checked={isSelected}
        disabled={isGone}
        onChange={onToggle}
        tabIndex={-1}
        aria-label={`Select the run in ${name}`}
      />
      <span className={styles.thread} aria-hidden />
      <span className={styles.state}>
        <StateMark run={run} />
      </span>
      <Link href={href} className={styles.name} aria-current={isShown ? "true" : undefined} {...focus}>
        <FullName row={names.rowOf({ key, userId })} />
      </Link>
      <span className={styles.text} dir="auto">
        {previewLine(preview, 240)}
      </span>
      <span className={styles.kind}>{kindWord(run)}</span>
      <Took run={run} />
      <When run={run} />
      {isOpen(run) && why !== undefined && (
        <span className={styles.why}>
          <RunWhy why={why} owner={run} details={href} tabIndex={focus.tabIndex} />
        </span>
      )}
      {why === undefined && run.worker !== undefined && (
        <span className={styles.why}>Runs on {processName(run.worker)}</span>
      )}
      {isFailed(run) && run.error !== undefined && (
        <span className={styles.error}>{oneLine(run.error.message, 400)}</span>
      )}
    </li>
  );
}

/** The column names, shown if the page is wide enough for columns. Each row has the same information without them. */
export function RunHeads() {
  return (
    <p className={styles.heads} aria-hidden>
      <span className={styles.stateHead}>State</span>
      <span>Session</span>
      <span>Input</span>
      <span>Kind</span>
      <span className={styles.took}>Took</span>
      <span className={styles.time}>When</span>
    </p>
  );
}

function Took({ run: { startedAt, endedAt } }: { readonly run: RunRow }) {
  const now = useNow(startedAt !== undefined && endedAt === undefined);
  return (
    <span className={styles.took}>
      {startedAt === undefined ? "" : duration((endedAt ?? now) - startedAt)}
    </span>
  );
}

/** The time that runs are sorted by. */
function When({ run }: { readonly run: RunRow }) {
  const now = useNow(isOpen(run));
  return (
    <time className={styles.time} title={fullTime(run.createdAt)}>
      {isOpen(run) ? ago(run.createdAt, now) : shortTime(run.createdAt)}
    </time>
  );
}
