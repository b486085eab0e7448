import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useGateway } from "../connect/gateway.tsx";
import { userParam } from "../connect/user-param.ts";
import { useDesk } from "../frame.tsx";
import type { SessionRow } from "./desk.ts";
import { idOf, rowName } from "./desk.ts";

interface SessionReference {
  readonly key: string;
  readonly userId?: string | undefined;
  readonly label?: string | undefined;
}

export interface SessionNames {
  /** What people call a session, also one that the desk has not loaded. */
  nameOf(session: SessionReference): string;
  /** Every session that the desk has loaded. */
  readonly keys: readonly string[];
  /** What its thread color is made from. */
  idOf(session: SessionReference): string;
}

const none: readonly SessionReference[] = [];
const mostKeys = 100;

/** Names of sessions. Those of `shown` that the desk does not have, such as archived ones, are read once. */
export function useSessionNames(shown: readonly SessionReference[] = none): SessionNames {
  const { rows, status } = useDesk();
  const known = useMemo(() => new Map(rows.map((row) => [idOf(row), row])), [rows]);
  const others = useOtherRows(
    status === "ready" ? shown.filter((each) => !known.has(referenceId(each))) : none,
  );
  return useMemo(() => {
    const find = (session: SessionReference) =>
      known.get(referenceId(session)) ?? others.get(referenceId(session));
    return {
      keys: rows.map(({ key }) => key),
      nameOf: (session) => {
        const { key, label } = session;
        return rowName(find(session) ?? { key, ...(label === undefined ? {} : { label }) });
      },
      idOf: (session) => find(session)?.sessionId ?? session.key,
    };
  }, [rows, known, others]);
}

function referenceId({ key, userId }: SessionReference): string {
  return idOf({ key, ...userParam({ userId }) });
}

const noRows: ReadonlyMap<string, SessionRow> = new Map();

function useOtherRows(sessions: readonly SessionReference[]): ReadonlyMap<string, SessionRow> {
  const { client } = useGateway();
  const wanted = [...new Map(sessions.map((each) => [referenceId(each), each])).values()].slice(0, mostKeys);
  const { data } = useQuery({
    queryKey: ["session names", wanted.map(referenceId).sort()],
    queryFn: async ({ signal }) => {
      const byUser = [...Map.groupBy(wanted, ({ userId }) => userId)];
      const lists = await Promise.all(
        byUser.map(([userId, each]) =>
          client.call(
            "sessions.list",
            { keys: each.map(({ key }) => key), ...userParam({ userId }) },
            { signal },
          ),
        ),
      );
      return new Map(lists.flatMap((list) => list.sessions).map((row) => [idOf(row), row]));
    },
    enabled: wanted.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (previous) => previous,
  });
  return data ?? noRows;
}
