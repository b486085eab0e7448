import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { useSearchParams } from "wouter";
import { useChange, useGateway, useMay, useOffline } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import type { DeskFilter, DeskState } from "../live/desk.ts";
import { Desk, unreadDesk } from "../live/desk.ts";
import type { SessionRow } from "../live/session-row.ts";
import { fullName, idOf } from "../live/session-row.ts";
import { placeOf } from "../paths.ts";
import buttons from "../ui/button.module.css";
import { Kbd, useKeys } from "../ui/keys.tsx";
import { Page } from "../ui/page.tsx";
import { SelectionBar, useForEach, useSelection } from "../ui/selection.tsx";
import { DeskFilters, DeskOrder, readFilter } from "./desk-filters.tsx";
import { useDeskLines } from "./desk-lines.ts";
import { DeskTable } from "./desk-table.tsx";

/** `/sessions?…`: all sessions, grouped by what they need, with filters, selection and bulk archiving. */
export default function DeskPage() {
  const [params] = useSearchParams();
  const query = params.toString();
  const filter = useMemo(() => readFilter(new URLSearchParams(query)), [query]);
  const { desk, state } = useFilteredDesk(filter);
  return (
    <Page
      title={`Sessions ${state.status === "loading" ? "" : state.total.toLocaleString("en")}`.trim()}
      tools={<DeskOrder />}
      isFlush
    >
      <DeskFilters />
      {/* Another list starts at its top, without the selection of the one before. */}
      <DeskRows key={query} desk={desk} state={state} filter={filter} />
    </Page>
  );
}

interface DeskRowsProps {
  readonly desk: Desk;
  readonly state: DeskState;
  readonly filter: DeskFilter;
}

function DeskRows({ desk, state, filter }: DeskRowsProps) {
  const view = useDeskLines(state.rows, state.approvals, { hasApprovals: true });
  const selection = useSelection(useMemo(() => state.rows.map(idOf), [state.rows]));
  const selected = state.rows.filter((row) => selection.ids.has(idOf(row)));
  const isArchived = filter.archived === true;
  const archiving = useArchiving(async (rows) => {
    await desk.refresh(rows.map(placeOf));
    view.steady.release();
  });
  const { undo } = archiving;
  const mayArchive = useMay("sessions.archive");
  const offline = useOffline();
  const archive = () => {
    selection.clear();
    void archiving.archive(selected, !isArchived);
  };
  useKeys({
    e: selected.length > 0 && mayArchive && offline === null ? archive : null,
    z: undo === null || offline !== null ? null : () => void undo(),
  });
  return (
    <>
      <DeskTable
        desk={desk}
        state={state}
        view={view}
        selection={selection}
        isFiltered={Object.keys(filter).length > 0}
      />
      <SelectionBar
        selection={selection}
        error={archiving.error}
        onDismiss={archiving.clearError}
        notice={
          archiving.notice !== null && (
            <>
              <span role="status">{archiving.notice}</span>
              {undo !== null && (
                <button type="button" className={buttons.button} onClick={() => void undo()} {...offline}>
                  Undo <Kbd keys="z" />
                </button>
              )}
              <button type="button" className={buttons.button} data-look="quiet" onClick={archiving.dismiss}>
                Dismiss
              </button>
            </>
          )
        }
      >
        {mayArchive && (
          <button
            type="button"
            className={buttons.button}
            disabled={archiving.isBusy}
            onClick={archive}
            {...offline}
          >
            {isArchived ? "Unarchive" : "Archive"} <Kbd keys="e" />
          </button>
        )}
      </SelectionBar>
    </>
  );
}

/** Uses the frame's desk if nothing is filtered, otherwise a separate one. */
function useFilteredDesk(filter: DeskFilter) {
  const { client, feed } = useGateway();
  const all = useDesk();
  const isFiltered = Object.keys(filter).length > 0;
  const [own, setOwn] = useState<{ readonly desk: Desk; readonly filter: DeskFilter } | null>(null);
  useEffect(() => {
    if (!isFiltered) return;
    const desk = new Desk(client, feed, filter);
    setOwn({ desk, filter });
    return () => desk.close();
  }, [client, feed, filter, isFiltered]);
  const desk = isFiltered && own !== null ? own.desk : all.desk;
  const state = useSyncExternalStore(desk.subscribe, desk.state);
  const isOther = isFiltered && own?.filter !== filter;
  return { desk, state: isOther ? unreadDesk : state };
}

/** Archives sessions and can undo the last archiving. */
function useArchiving(onDone: (rows: readonly SessionRow[]) => Promise<void>) {
  const { client } = useGateway();
  const change = useChange();
  const { forEach, isBusy, error, clearError } = useForEach<SessionRow>();
  const [last, setLast] = useState<{
    readonly rows: readonly SessionRow[];
    readonly isArchived: boolean;
  } | null>(null);
  const [canUndo, setCanUndo] = useState(false);
  const archive = async (rows: readonly SessionRow[], isArchived: boolean) => {
    const done = await forEach(rows, (row) =>
      change("sessions.archive", { ...placeOf(row), archived: isArchived }),
    );
    await onDone(done);
    setLast(done.length === 0 ? null : { rows: done, isArchived });
    return done.length > 0;
  };
  const [first] = last?.rows ?? [];
  const count =
    last?.rows.length === 1 && first ? `“${fullName(client, first)}”` : `${last?.rows.length} sessions`;
  return {
    isBusy,
    error,
    clearError,
    notice: last === null ? null : `${count} ${last.isArchived ? "archived" : "unarchived"}.`,
    dismiss: () => setLast(null),
    undo:
      last === null || !canUndo
        ? null
        : async () => {
            setCanUndo(false);
            await archive(last.rows, !last.isArchived);
          },
    archive: async (rows: readonly SessionRow[], isArchived: boolean) =>
      setCanUndo(await archive(rows, isArchived)),
  };
}
