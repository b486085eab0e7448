import { Fragment, useMemo } from "react";
import { useLocation } from "wouter";
import { errorText, useMay, useOffline } from "../connect/gateway.tsx";
import { useSessionNames } from "../live/session-names.ts";
import { runsPath } from "../paths.ts";
import buttons from "../ui/button.module.css";
import { Kbd, useKeys } from "../ui/keys.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { useRoving } from "../ui/roving.ts";
import { SelectAll, SelectionBar, useSelection } from "../ui/selection.tsx";
import { FreshRows, useSteady } from "../ui/steady.tsx";
import { LaneStrip } from "./lane-strip.tsx";
import { useRunActions } from "./run-actions.ts";
import { RunHeads, RunLine } from "./run-line.tsx";
import { RunPanel } from "./run-panel.tsx";
import type { RunRow } from "./run-state.tsx";
import { canAbort, canRetry, laneWords, waitingStates } from "./run-state.tsx";
import styles from "./runs-tab.module.css";
import type { RunsFilter } from "./use-runs.ts";
import { useRuns } from "./use-runs.ts";

const groupNames = { waiting: "Waiting", running: "Running", ended: "Ended" } as const;
type Group = keyof typeof groupNames;
type Line = { readonly id: string; readonly group: Group; readonly run: RunRow };

/** `/runs?show=&lane=&session=&run=`: waiting runs with the reason first, then running ones, then ended ones. */
export function RunsTab({
  filter,
  runId,
  userId,
  more,
}: {
  readonly filter: RunsFilter;
  readonly runId: string | null;
  readonly userId: string | null;
  /** The filters in the URL. */
  readonly more: Readonly<Record<string, string>>;
}) {
  const runs = useRuns(filter);
  const [, navigate] = useLocation();
  const steady = useSteady(
    useMemo(() => toLines(runs.open, runs.ended), [runs.open, runs.ended]),
    inGroup,
  );
  const { items: lines } = steady;
  const names = useSessionNames(
    useMemo(
      () => lines.map(({ run: { sessionKey: key, userId: whose } }) => ({ key, userId: whose })),
      [lines],
    ),
  );
  const ids = useMemo(() => lines.map(({ id }) => id), [lines]);
  const roving = useRoving(ids);
  const selection = useSelection(ids);
  const actions = useRunActions();
  const offline = useOffline();
  const mayAbort = useMay("runs.abort");
  const mayRetry = useMay("runs.retry");
  const selected = lines
    .filter(({ id }) => selection.ids.has(id) && !steady.isGone(id))
    .map(({ run }) => run);
  const toAbort = mayAbort ? selected.filter(canAbort) : [];
  const toRetry = mayRetry ? selected.filter(canRetry) : [];

  const hrefOf = ({ runId: id, userId: whose }: RunRow) =>
    runsPath("runs", { ...more, run: id, user: whose });
  const closePanel = () => {
    navigate(runsPath("runs", more));
    if (runId !== null) roving.focus(runId);
  };
  const { stop } = roving;
  useKeys({
    x: stop === null ? null : () => selection.toggle(stop),
    a: toAbort.length > 0 ? () => void actions.abort(toAbort) : null,
    r: toRetry.length > 0 ? () => void actions.retry(toRetry) : null,
  });

  return (
    <div className={styles.tab}>
      <LaneStrip current={filter.lane} more={more} />
      <div className={styles.columns}>
        <div className={styles.main} onKeyDown={roving.onKeyDown} {...steady.hold}>
          <FreshRows steady={steady} />
          {lines.length > 0 && <RunHeads />}
          <div ref={roving.list} className={styles.list}>
            {runs.error !== null && lines.length === 0 ? (
              <ErrorNotice error={runs.error} />
            ) : runs.isLoading ? (
              <Notice text="Loading…" isBusy />
            ) : lines.length === 0 ? (
              !runs.hasMore && <Notice text={emptyText(filter)} />
            ) : (
              (Object.keys(groupNames) as Group[]).map((group) => {
                const members = lines.filter((line) => line.group === group);
                if (members.length === 0) return null;
                return (
                  <Fragment key={group}>
                    <h2 className={styles.head}>
                      <SelectAll
                        name={groupNames[group]}
                        ids={members.map(({ id }) => id)}
                        selection={selection}
                      />
                      {groupNames[group]}
                      <span>{group === "ended" && runs.hasMore ? `${members.length}+` : members.length}</span>
                    </h2>
                    <ul className={styles.rows}>
                      {members.map(({ id, run }) => (
                        <RunLine
                          key={id}
                          run={run}
                          href={hrefOf(run)}
                          names={names}
                          isSelected={selection.ids.has(id)}
                          isShown={id === runId}
                          isGone={steady.isGone(id)}
                          onToggle={() => selection.toggle(id)}
                          focus={roving.item(id)}
                        />
                      ))}
                    </ul>
                  </Fragment>
                );
              })
            )}
            {runs.isCut && <p className={styles.more}>Only the 500 most recent unfinished runs are shown.</p>}
            {runs.hasMore && (
              <p className={styles.more}>
                <button
                  type="button"
                  className={buttons.button}
                  disabled={runs.isLoadingMore}
                  onClick={runs.loadMore}
                >
                  {runs.isLoadingMore ? "Loading…" : runs.error === null ? "Show earlier runs" : "Retry"}
                </button>{" "}
                {runs.error !== null && <span role="alert">{errorText(runs.error)}</span>}
              </p>
            )}
          </div>
          <SelectionBar selection={selection} error={actions.error} onDismiss={actions.clearError}>
            {mayAbort && (
              <button
                type="button"
                className={buttons.button}
                disabled={toAbort.length === 0 || actions.isBusy}
                onClick={() => void actions.abort(toAbort)}
                {...offline}
              >
                Abort {toAbort.length > 0 && toAbort.length} <Kbd keys="a" />
              </button>
            )}
            {mayRetry && (
              <button
                type="button"
                className={buttons.button}
                disabled={toRetry.length === 0 || actions.isBusy}
                onClick={() => void actions.retry(toRetry)}
                {...offline}
              >
                Retry {toRetry.length > 0 && toRetry.length} <Kbd keys="r" />
              </button>
            )}
          </SelectionBar>
        </div>
        {runId !== null && <RunPanel key={runId} runId={runId} userId={userId} onClose={closePanel} />}
      </div>
    </div>
  );
}

function toLines(open: readonly RunRow[], ended: readonly RunRow[]): readonly Line[] {
  const lines = new Map<string, Line>();
  const add = (group: Group, runs: readonly RunRow[]) => {
    // Two pages that were read at different times can contain the same run. Its first position is used.
    for (const run of runs) if (!lines.has(run.runId)) lines.set(run.runId, { id: run.runId, group, run });
  };
  const waiting = open.filter(({ state }) => (waitingStates as readonly string[]).includes(state));
  // Runs that need a person come first, then those that have waited longest.
  add(
    "waiting",
    waiting.toSorted((a, b) => needs(b) - needs(a) || a.createdAt - b.createdAt),
  );
  add(
    "running",
    open.filter(({ state }) => state === "running"),
  );
  add("ended", ended);
  return [...lines.values()];
}

function inGroup(now: Line, { group }: Line): Line {
  return { ...now, group };
}

function needs({ why }: RunRow): number {
  return why?.kind === "approval" ? 1 : 0;
}

function emptyText({ shown, lane }: RunsFilter): string {
  const where =
    lane === null
      ? ""
      : ` in the lane “${Object.hasOwn(laneWords, lane) ? laneWords[lane as keyof typeof laneWords] : lane}”`;
  if (shown === "failed") return `No run has failed${where}.`;
  if (shown === "open") return `Nothing is running or waiting${where}.`;
  return lane === null
    ? "No runs yet. Each message, task and schedule starts one."
    : `There are no runs${where} yet.`;
}
