import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { SkeinClient } from "skein/client";
import { useGateway } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import { ownerOf, userParam } from "../paths.ts";
import { assignThreads } from "../ui/theme.ts";
import type { NamedRow, SessionRow } from "./session-row.ts";
import { fullName, idOf, rowName } from "./session-row.ts";

interface SessionReference {
  readonly key: string;
  readonly userId?: string | undefined;
  readonly label?: string | undefined;
}

export interface SessionNames {
  /** Returns a session's display name, even if the desk has not loaded the session. */
  nameOf(session: SessionReference): string;
  /** Returns the same name with its user, for a token that covers several users. */
  fullNameOf(session: SessionReference): string;
  /** Returns the row that has the name, for `FullName`. */
  rowOf(session: SessionReference): NamedRow;
  /** Returns the value from which the thread color is derived. */
  idOf(session: SessionReference): string;
}

const none: readonly SessionReference[] = [];
const maxKeys = 100;

/** Session names. Sessions in `shown` that the desk does not have, such as archived ones, are read once. */
export function useSessionNames(shown: readonly SessionReference[] = none): SessionNames {
  const { client } = useGateway();
  const { rows, status, desk } = useDesk();
  const others = useOtherRows(status === "ready" ? shown.filter((each) => desk.rowOf(each) === null) : none);
  // `desk.rowOf` returns different rows when `rows` changes, so `rows` must be a dependency.
  return useMemo(() => {
    const find = (session: SessionReference) =>
      desk.rowOf(session) ?? others.get(referenceId(client, session));
    const rowOf = (session: SessionReference): NamedRow => {
      const { key, userId, label } = session;
      return find(session) ?? { key, userId, ...(label === undefined ? {} : { label }) };
    };
    return {
      nameOf: (session) => rowName(rowOf(session)),
      fullNameOf: (session) => fullName(client, rowOf(session)),
      rowOf,
      idOf: (session) => find(session)?.sessionId ?? session.key,
    };
  }, [client, desk, rows, others]);
}

function referenceId(client: SkeinClient, session: SessionReference): string {
  return idOf({ key: session.key, userId: ownerOf(client, session) });
}

const noRows: ReadonlyMap<string, SessionRow> = new Map();

function useOtherRows(sessions: readonly SessionReference[]): ReadonlyMap<string, SessionRow> {
  const { client } = useGateway();
  const byId = new Map(sessions.map((each) => [referenceId(client, each), each] as const));
  const wanted = [...byId].slice(0, maxKeys);
  const { data } = useQuery({
    queryKey: ["session names", wanted.map(([id]) => id).sort()],
    queryFn: async ({ signal }) => {
      const byUser = [
        ...Map.groupBy(
          wanted.map(([, each]) => each),
          ({ userId }) => userId,
        ),
      ];
      const lists = await Promise.all(
        byUser.map(([userId, each]) =>
          client.call(
            "sessions.list",
            { keys: each.map(({ key }) => key), ...userParam({ userId }) },
            { signal },
          ),
        ),
      );
      const rows = lists.flatMap((list) => list.sessions);
      assignThreads(rows);
      return new Map(rows.map((row) => [idOf(row), row]));
    },
    enabled: wanted.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (previous) => previous,
  });
  return data ?? noRows;
}
