import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { useSearchParams } from "wouter";
import { errorText, useGateway, useMay } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import type { DeskFilter, SessionRow } from "../live/desk.ts";
import { Desk, idOf, rowName } from "../live/desk.ts";
import { Kbd } from "../ui/kbd.tsx";
import { useKeys } from "../ui/keys.ts";
import { Page } from "../ui/page.tsx";
import { DeskFilters, DeskOrder, readFilter } from "./desk-filters.tsx";
import styles from "./desk-page.module.css";
import { DeskTable } from "./desk-table.tsx";

/** `/sessions?…`: all sessions by what they need, with filters, selection and bulk archiving. */
export default function DeskPage() {
  const [query] = useSearchParams();
  const filter = useMemo(() => readFilter(query), [query]);
  const { desk, ...state } = useFilteredDesk(filter);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const { archive, undo, notice, dismiss } = useArchiving(desk, () => setSelected(new Set()));
  const mayArchive = useMay("sessions.archive");
  const chosen = state.rows.filter((row) => selected.has(idOf(row)));
  const isArchived = filter.archived === true;
  useKeys({
    e: chosen.length > 0 && mayArchive ? () => void archive(chosen, !isArchived) : null,
    z: undo === null ? null : () => void undo(),
    Escape: chosen.length > 0 ? () => setSelected(new Set()) : null,
  });
  return (
    <Page title={`Sessions ${state.total.toLocaleString("en")}`} tools={<DeskOrder />} isFlush>
      <DeskFilters rows={state.rows} />
      <DeskTable
        state={state}
        loadMore={() => void desk.loadMore()}
        selected={selected}
        onSelect={setSelected}
        isFiltered={Object.keys(filter).length > 0}
      />
      {(chosen.length > 0 || notice !== null) && (
        <div className={styles.bar} role="status">
          {chosen.length > 0 ? (
            <>
              <span>{chosen.length === 1 ? "1 session selected" : `${chosen.length} sessions selected`}</span>
              {mayArchive && (
                <button type="button" onClick={() => void archive(chosen, !isArchived)}>
                  {isArchived ? "Show again" : "Archive"} <Kbd keys="e" />
                </button>
              )}
              <button type="button" onClick={() => setSelected(new Set())}>
                Clear <Kbd keys="Escape" />
              </button>
            </>
          ) : (
            <>
              <span>{notice}</span>
              {undo !== null && (
                <button type="button" onClick={() => void undo()}>
                  Undo <Kbd keys="z" />
                </button>
              )}
              <button type="button" onClick={dismiss}>
                Dismiss
              </button>
            </>
          )}
        </div>
      )}
    </Page>
  );
}

/** The frame's desk while nothing is filtered, otherwise one of its own. */
function useFilteredDesk(filter: DeskFilter) {
  const { client, feed } = useGateway();
  const all = useDesk();
  const isFiltered = Object.keys(filter).length > 0;
  const [own, setOwn] = useState<Desk | null>(null);
  useEffect(() => {
    if (!isFiltered) return setOwn(null);
    const desk = new Desk(client, feed, filter);
    setOwn(desk);
    return () => desk.close();
  }, [client, feed, filter, isFiltered]);
  const desk = own ?? all.desk;
  return { desk, ...useSyncExternalStore(desk.subscribe, desk.state) };
}

/** Archives sessions one after the other, and can take the last step back. */
function useArchiving(desk: Desk, onDone: () => void) {
  const { client } = useGateway();
  const [notice, setNotice] = useState<string | null>(null);
  const [undo, setUndo] = useState<(() => Promise<void>) | null>(null);

  const setArchived = async (rows: readonly SessionRow[], archived: boolean): Promise<SessionRow[]> => {
    const done: SessionRow[] = [];
    let failure: string | null = null;
    for (const row of rows) {
      const { key, userId } = row;
      try {
        await client.call("sessions.archive", { key, archived, ...(userId === undefined ? {} : { userId }) });
        done.push(row);
      } catch (error) {
        failure ??= `${rowName(row)}: ${errorText(error)}`;
      }
    }
    await desk.reload();
    const count = done.length === 1 ? `“${rowName(done[0] as SessionRow)}”` : `${done.length} sessions`;
    const verb = archived ? "is archived" : "is in the list again";
    const text = done.length === 0 ? "" : `${count} ${done.length === 1 ? verb : verb.replace("is", "are")}.`;
    setNotice([text, failure].filter(Boolean).join(" "));
    return done;
  };

  return {
    notice,
    undo,
    dismiss: () => {
      setNotice(null);
      setUndo(null);
    },
    archive: async (rows: readonly SessionRow[], archived: boolean) => {
      onDone();
      const done = await setArchived(rows, archived);
      const takeBack = async () => {
        setUndo(null);
        await setArchived(done, !archived);
      };
      setUndo(done.length === 0 ? null : () => takeBack);
    },
  };
}
