import type { KeyboardEvent } from "react";
import { Fragment, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { errorText, useMay } from "../connect/gateway.tsx";
import { useSessionNames } from "../live/session-names.ts";
import buttons from "../ui/button.module.css";
import { Kbd } from "../ui/kbd.tsx";
import { hasLetterKeys, isTyping } from "../ui/keys.ts";
import { Notice } from "../ui/notice.tsx";
import { useRoving } from "../ui/roving.ts";
import { useSteady } from "../ui/steady.ts";
import { LaneStrip } from "./lane-strip.tsx";
import { useRunActions } from "./run-actions.ts";
import { RunLine } from "./run-line.tsx";
import { RunPanel } from "./run-panel.tsx";
import type { RunRow } from "./run-state.tsx";
import { canAbort, canRetry, waitingStates } from "./run-state.tsx";
import { workPath } from "./runs-path.ts";
import styles from "./runs-tab.module.css";
import { SelectAll, SelectionBar, useSelection } from "./selection.tsx";
import type { RunsFilter } from "./use-runs.ts";
import { useRuns } from "./use-runs.ts";

const groupNames = { waiting: "Waiting", running: "Running", ended: "Ended" } as const;
type Group = keyof typeof groupNames;
type Line = { readonly id: string; readonly group: Group; readonly run: RunRow };

/** `/work?show=&lane=&session=&run=`: what waits first, with the reason; then what runs, then what has ended. */
export function RunsTab({
  filter,
  runId,
  userId,
  more,
}: {
  readonly filter: RunsFilter;
  readonly runId: string | null;
  readonly userId: string | null;
  /** The filters as they are in the address. */
  readonly more: Readonly<Record<string, string>>;
}) {
  const runs = useRuns(filter);
  const [, navigate] = useLocation();
  const [isHeld, setIsHeld] = useState(false);
  const { items: lines, freshCount } = useSteady(
    useMemo(() => toLines(runs.open, runs.ended), [runs.open, runs.ended]),
    isHeld,
    inGroup,
  );
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
  const mayAbort = useMay("runs.abort");
  const mayRetry = useMay("runs.retry");
  const selected = lines.filter(({ id }) => selection.ids.has(id)).map(({ run }) => run);
  const toAbort = mayAbort ? selected.filter(canAbort) : [];
  const toRetry = mayRetry ? selected.filter(canRetry) : [];

  const hrefOf = ({ runId: id, userId: whose }: RunRow) =>
    workPath("runs", { ...more, run: id, user: whose ?? more.user });
  const closePanel = () => {
    navigate(workPath("runs", more));
    if (runId !== null) roving.focus(runId);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    roving.onKeyDown(event);
    if (event.defaultPrevented || isTyping(event) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      if (selection.ids.size > 0) selection.clear();
      else if (runId !== null) closePanel();
      return;
    }
    if (!hasLetterKeys()) return;
    if (event.key === "x" && roving.stop !== null) selection.toggle(roving.stop);
    if (event.key === "a" && toAbort.length > 0) void actions.abort(toAbort);
    if (event.key === "r" && toRetry.length > 0) void actions.retry(toRetry);
  };

  return (
    <div className={styles.tab} onKeyDown={onKeyDown}>
      <LaneStrip current={filter.lane} more={more} />
      <div className={styles.columns}>
        <div className={styles.main}>
          <div
            ref={roving.list}
            className={styles.list}
            onPointerEnter={({ pointerType }) => setIsHeld(pointerType === "mouse")}
            onPointerLeave={() => setIsHeld(false)}
          >
            {runs.error !== null && lines.length === 0 ? (
              <Notice text={errorText(runs.error)} isError />
            ) : runs.isLoading ? (
              <Notice text="Reading the runs…" isBusy />
            ) : lines.length === 0 ? (
              <Notice text={emptyText(filter)} />
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
                          onToggle={() => selection.toggle(id)}
                          focus={roving.item(id)}
                        />
                      ))}
                    </ul>
                  </Fragment>
                );
              })
            )}
            {runs.hasMore && (
              <p className={styles.more}>
                <button
                  type="button"
                  className={buttons.button}
                  disabled={runs.isLoadingMore}
                  onClick={runs.loadMore}
                >
                  {runs.isLoadingMore ? "Reading…" : "Show earlier runs"}
                </button>
              </p>
            )}
          </div>
          {freshCount > 0 && (
            <button type="button" className={styles.fresh} onClick={() => setIsHeld(false)}>
              {freshCount === 1 ? "1 new run" : `${freshCount} new runs`}
            </button>
          )}
          <SelectionBar selection={selection} error={actions.error} onDismiss={actions.clearError}>
            <button
              type="button"
              className={buttons.button}
              disabled={toAbort.length === 0 || actions.isBusy}
              onClick={() => void actions.abort(toAbort)}
            >
              Abort {toAbort.length > 0 && toAbort.length} <Kbd keys="a" />
            </button>
            <button
              type="button"
              className={buttons.button}
              disabled={toRetry.length === 0 || actions.isBusy}
              onClick={() => void actions.retry(toRetry)}
            >
              Retry {toRetry.length > 0 && toRetry.length} <Kbd keys="r" />
            </button>
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
    // Two pages that were read at different times may both have a run; the first place counts.
    for (const run of runs) if (!lines.has(run.runId)) lines.set(run.runId, { id: run.runId, group, run });
  };
  const waiting = open.filter(({ state }) => (waitingStates as readonly string[]).includes(state));
  // What needs a person first, then what has waited longest.
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
  const where = lane === null ? "" : ` in the lane ${lane}`;
  if (shown === "failed") return `No run has failed${where}.`;
  return shown === "open" ? `Nothing runs or waits${where}.` : `There are no runs${where} yet.`;
}
