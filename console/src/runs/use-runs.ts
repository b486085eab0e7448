import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Params, Result } from "skein/client";
import { useCall, useGateway } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { userParam, usersParam } from "../paths.ts";
import type { RunRow } from "./run-state.tsx";
import { endedStates, failedStates, openStates } from "./run-state.tsx";

export type RunsShown = "all" | "open" | "failed";

export interface RunsFilter {
  readonly shown: RunsShown;
  readonly lane: string | null;
  readonly session: string | null;
  readonly userId: string | null;
}

const pageSize = 100;
const maxOpen = 500;

/** The open runs, and the ended ones page by page. Both are read again after run events. */
export function useRuns({ shown, lane, session, userId }: RunsFilter) {
  const { client } = useGateway();
  useRefresh(
    ["runs.list", "lanes.list"],
    ({ event }) => event.startsWith("run.") || event.startsWith("approval."),
  );
  const scope: Params<"runs.list"> =
    session === null
      ? usersParam(client)
      : { sessionKey: session, ...userParam({ userId: userId ?? undefined }) };
  const open = useCall(
    "runs.list",
    { ...scope, states: [...openStates], limit: maxOpen },
    { keepsPrevious: true, isEnabled: shown !== "failed" },
  );
  const states = shown === "failed" ? [...failedStates] : [...endedStates];
  const ended = useInfiniteQuery({
    queryKey: ["runs.list", { ...scope, states, limit: pageSize }],
    queryFn: ({ pageParam, signal }) =>
      client.call(
        "runs.list",
        { ...scope, states, limit: pageSize, ...(pageParam === null ? {} : { before: pageParam }) },
        { signal },
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (page: Result<"runs.list">) => page.nextBefore ?? null,
    enabled: shown !== "open",
  });
  const openRuns = useMemo(() => {
    return shown === "failed" ? [] : inLane(open.data?.runs ?? [], lane);
  }, [shown, lane, open.data]);
  const endedRuns = useMemo(() => {
    return shown === "open"
      ? []
      : inLane(
          (ended.data?.pages ?? []).flatMap(({ runs }) => runs),
          lane,
        );
  }, [shown, lane, ended.data]);
  return {
    error: open.error ?? ended.error,
    isLoading: (shown !== "failed" && open.isPending) || (shown !== "open" && ended.isPending),
    open: openRuns,
    /** There might be more open runs than were read. */
    isCut: open.data?.nextBefore !== undefined && shown !== "failed",
    ended: endedRuns,
    hasMore: shown !== "open" && ended.hasNextPage,
    isLoadingMore: ended.isFetchingNextPage,
    loadMore: () => void ended.fetchNextPage(),
  };
}

function inLane(runs: readonly RunRow[], lane: string | null): readonly RunRow[] {
  return lane === null ? runs : runs.filter((run) => run.lane === lane);
}
