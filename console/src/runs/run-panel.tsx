import type { ReactNode } from "react";
import type { Result } from "skein/client";
import { Link } from "wouter";
import { useCall, useMay, useOffline } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { useSessionNames } from "../live/session-names.ts";
import { placeOf, runsPath, sessionPath, userParam } from "../paths.ts";
import buttons from "../ui/button.module.css";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { FullName } from "../ui/session-head.tsx";
import { SidePanel } from "../ui/side-panel.tsx";
import { threadOf } from "../ui/theme.ts";
import { duration, fullTime, usageText } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import { useRunActions } from "./run-actions.ts";
import { RunBudget } from "./run-budget.tsx";
import styles from "./run-panel.module.css";
import type { RunRow } from "./run-state.tsx";
import { canAbort, canRetry, isOpen, kindWord, laneWords, processName, StateMark } from "./run-state.tsx";
import { RunSteps } from "./run-steps.tsx";
import { RunWhy } from "./run-why.tsx";

interface RunPanelProps {
  readonly runId: string;
  readonly userId: string | null;
  readonly onClose: () => void;
}

/** Details about one run, next to the list. */
export function RunPanel({ runId, userId, onClose }: RunPanelProps) {
  const whose = { runId, ...userParam({ userId }) };
  const { data, error } = useCall("runs.get", whose, { keepsPrevious: true });
  // A step ends with an entry. The runs that this run started use the same budget.
  useRefresh(
    ["runs.get", "runs.steps", "runs.budget"],
    ({ event, payload }) =>
      ("runId" in payload && payload.runId === runId) ||
      event === "run.ended" ||
      (event === "entry.appended" && payload.sessionKey === data?.run.sessionKey),
  );
  return (
    <SidePanel
      title="Run"
      note={runId}
      thread={data === undefined ? undefined : threadOf(data.run.sessionId)}
      onClose={onClose}
    >
      {error !== null ? (
        <ErrorNotice error={error} />
      ) : data === undefined ? (
        <Notice text="Loading…" isBusy />
      ) : (
        <RunDetails details={data} />
      )}
    </SidePanel>
  );
}

function RunDetails({ details: { run, input, notes, approvals } }: { readonly details: Result<"runs.get"> }) {
  const names = useSessionNames();
  const { sessionKey: key, userId } = run;
  return (
    <>
      <div className={styles.top}>
        <StateMark run={run} />
        <Link href={sessionPath(placeOf(run))} className={styles.session}>
          <FullName row={names.rowOf({ key, userId })} />
        </Link>
        <RunButtons run={run} />
      </div>
      {run.why !== undefined && isOpen(run) && (
        <p className={styles.why}>
          <RunWhy why={run.why} owner={run} />
        </p>
      )}
      {run.error !== undefined && (
        <p className={styles.error}>
          <code>{run.error.code}</code> {run.error.message}
        </p>
      )}
      <Section name="Input">
        <p className={styles.input} tabIndex={0} dir="auto">
          {input}
        </p>
      </Section>
      <Section name="Time">
        <Timings run={run} />
      </Section>
      <Section name="Steps">
        <RunSteps run={run} />
      </Section>
      {approvals.length > 0 && (
        <Section name="Approvals">
          <ul className={styles.notes}>
            {approvals.map(({ approvalId, toolName, answer, by }) => (
              <li key={approvalId}>
                <code>{toolName}</code>{" "}
                {answer === undefined ? (
                  <Link href={runsPath("approvals", { approval: approvalId })}>waits for an answer</Link>
                ) : (
                  `${answer}${by === undefined ? "" : ` by ${by}`}`
                )}
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section name="Budget for the whole request">
        <RunBudget rootId={run.rootId} {...userParam(run)} />
      </Section>
      <Section name="Facts">
        <Facts run={run} />
      </Section>
      {notes.length > 0 && (
        <Section name="Changes to its messages">
          <ul className={styles.notes}>
            {notes.map(({ kind, note }, index) => (
              <li key={index}>
                <code>{kind}</code> {note}
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function Section({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <section className={styles.section}>
      <h3>{name}</h3>
      {children}
    </section>
  );
}

function RunButtons({ run }: { readonly run: RunRow }) {
  const { abort, retry, release, isBusy, error } = useRunActions();
  const offline = useOffline();
  const may = { abort: useMay("runs.abort"), retry: useMay("runs.retry"), release: useMay("runs.release") };
  return (
    <div className={styles.buttons}>
      {may.release && run.waitsForApp !== undefined && (
        <button
          type="button"
          className={buttons.button}
          disabled={isBusy}
          onClick={() => void release([run])}
          {...offline}
        >
          Let any process run it
        </button>
      )}
      {may.abort && canAbort(run) && (
        <button
          type="button"
          className={buttons.button}
          disabled={isBusy}
          onClick={() => void abort([run])}
          {...offline}
        >
          Abort
        </button>
      )}
      {may.retry && canRetry(run) && (
        <button
          type="button"
          className={buttons.button}
          disabled={isBusy}
          onClick={() => void retry([run])}
          {...offline}
        >
          Retry
        </button>
      )}
      {error !== null && <p role="alert">{error}</p>}
    </div>
  );
}

/** How long the run was queued and how long it ran, drawn to scale. */
function Timings({ run: { createdAt, startedAt, endedAt, deadline } }: { readonly run: RunRow }) {
  const now = useNow(endedAt === undefined);
  const end = endedAt ?? now;
  const queued = (startedAt ?? end) - createdAt;
  const ran = startedAt === undefined ? 0 : end - startedAt;
  return (
    <>
      <div className={styles.bar} aria-hidden>
        <span className={styles.queued} style={{ flexGrow: Math.max(queued, 1) }} />
        {startedAt !== undefined && <span className={styles.ran} style={{ flexGrow: Math.max(ran, 1) }} />}
      </div>
      <dl className={styles.facts}>
        <Fact name="Accepted">{fullTime(createdAt)}</Fact>
        <Fact name="Queued for">{duration(queued)}</Fact>
        {startedAt !== undefined && (
          <Fact name={endedAt === undefined ? "Running for" : "Ran for"}>{duration(ran)}</Fact>
        )}
        {endedAt !== undefined && <Fact name="Ended">{fullTime(endedAt)}</Fact>}
        {endedAt === undefined && deadline !== undefined && <Fact name="Deadline">{fullTime(deadline)}</Fact>}
      </dl>
    </>
  );
}

function Facts({ run }: { readonly run: RunRow }) {
  const linked = {
    startedBy: "Started by",
    retryOf: "Retry of",
    retriedAs: "Retried as",
    mergedInto: "Merged into",
  } as const;
  return (
    <dl className={styles.facts}>
      <Fact name="Agent">{run.agentId}</Fact>
      {run.model !== undefined && <Fact name="Model">{run.model}</Fact>}
      <Fact name="Kind">{kindWord(run)}</Fact>
      <Fact name="Lane">{laneWords[run.lane]}</Fact>
      <Fact name="Tokens, all steps">{usageText(run.usage)}</Fact>
      {run.worker !== undefined && <Fact name="Worker">{processName(run.worker)}</Fact>}
      {run.app !== undefined && <Fact name="App">{run.app}</Fact>}
      {run.missingTools !== undefined && <Fact name="Missing tools">{run.missingTools.join(", ")}</Fact>}
      {run.lost !== undefined && <Fact name="Lost owners">{run.lost}</Fact>}
      {(Object.keys(linked) as (keyof typeof linked)[]).map((field) => {
        const other = run[field];
        if (other === undefined) return null;
        return (
          <Fact key={field} name={linked[field]}>
            <Link href={runsPath("runs", { run: other, user: run.userId })}>{other}</Link>
          </Fact>
        );
      })}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
