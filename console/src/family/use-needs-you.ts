import { useMemo } from "react";
import { useDesk } from "../frame.tsx";

/** The runs that wait for an approval, and the keys of their sessions. */
export function useNeedsYou(): ReadonlySet<string> {
  const { approvals } = useDesk();
  return useMemo(
    () => new Set(approvals.flatMap(({ runId, sessionKey }) => [runId, sessionKey])),
    [approvals],
  );
}
