import type { Result } from "skein/client";
import { Link } from "wouter";
import { useCall } from "../connect/gateway.tsx";
import { runsPath } from "../paths.ts";
import { ErrorLine } from "../ui/notice.tsx";
import { fullTime } from "../ui/time.ts";
import styles from "./lane-strip.module.css";
import { laneWords, processName } from "./run-state.tsx";

/** With more slots than this, a bar is shown instead of one mark per slot. */
const mostMarks = 16;

interface LaneStripProps {
  readonly current: string | null;
  readonly more: Readonly<Record<string, string>>;
}

/** How full each lane is. Selecting a lane filters the runs below, and selecting it again shows all runs. */
export function LaneStrip({ current, more }: LaneStripProps) {
  const { data, error } = useCall("lanes.list", {});
  if (error !== null) return <ErrorLine intro="The lanes cannot be read: " error={error} />;
  if (data === undefined) return <div className={styles.strip} aria-busy />;
  const { processes } = data;
  return (
    <>
      <Lanes lanes={data.lanes} current={current} more={more} />
      {processes !== undefined && <Processes processes={processes} />}
    </>
  );
}

function Lanes({ lanes, current, more }: LaneStripProps & Pick<Result<"lanes.list">, "lanes">) {
  return (
    <ul className={styles.strip} aria-label="Lanes">
      {lanes.map(({ lane, limit, running, queued }) => (
        <li key={lane}>
          <Link
            href={runsPath("runs", { ...more, lane: lane === current ? undefined : lane })}
            className={styles.lane}
            aria-current={lane === current ? "true" : undefined}
            title={`Lane ${lane}: ${running} of ${limit} slots in use, ${queued} ${queued === 1 ? "run" : "runs"} waiting`}
          >
            <span className={styles.name}>{laneWords[lane]}</span>
            {limit <= mostMarks ? (
              <Marks limit={limit} running={running} />
            ) : (
              <Bar limit={limit} running={running} />
            )}
            <span className={styles.figure}>
              {running}/{limit}
            </span>
            {queued > 0 && <span className={styles.queued}>{queued} waiting</span>}
          </Link>
        </li>
      ))}
    </ul>
  );
}

/** Which processes share the database, and how many runs each of them executes. */
function Processes({ processes }: { readonly processes: NonNullable<Result<"lanes.list">["processes"]> }) {
  return (
    <ul className={styles.processes} aria-label="Processes">
      {processes.map(({ host, pid, version, startedAt, executesRuns, runs }) => (
        <li key={`${host} ${pid}`} title={`Version ${version}, since ${fullTime(startedAt)}`}>
          <span className={styles.name}>{processName({ host, pid })}</span>{" "}
          {executesRuns ? `${runs} ${runs === 1 ? "run" : "runs"}` : "no workers"}
        </li>
      ))}
    </ul>
  );
}

interface Fill {
  readonly limit: number;
  readonly running: number;
}

/** One mark per slot, filled while a run occupies it. */
function Marks({ limit, running }: Fill) {
  return (
    <svg width={limit * 6 - 2} height={12} aria-hidden>
      {Array.from({ length: limit }, (_, index) => (
        <rect
          key={index}
          x={index * 6 + 0.5}
          y={0.5}
          width={3}
          height={11}
          className={index < running ? styles.taken : styles.free}
        />
      ))}
    </svg>
  );
}

function Bar({ limit, running }: Fill) {
  return (
    <svg width={94} height={12} aria-hidden>
      <rect x={0.5} y={0.5} width={93} height={11} className={styles.free} />
      <rect
        x={0.5}
        y={0.5}
        width={(93 * Math.min(running, limit)) / limit}
        height={11}
        className={styles.taken}
      />
    </svg>
  );
}
