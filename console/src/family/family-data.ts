import { useMemo } from "react";
import type { Result } from "skein/client";
import { useCall, useGateway } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { useDesk } from "../frame.tsx";
import type { SessionPlace } from "../paths.ts";
import { ownerOf, sessionPath, userParam } from "../paths.ts";

export type Family = Result<"sessions.family">;
export type Member = Family["nodes"][number];
export type Span = Family["spans"][number];
export type Edge = Family["edges"][number];

/** The family of a session, read again soon after an event of one of its members. */
export function useFamily(place: SessionPlace) {
  const family = useCall("sessions.family", place, { keepsPrevious: true, staleMs: 0 });
  const keys = useMemo(() => new Set(family.data?.nodes.map((member) => member.key)), [family.data]);
  useRefresh(
    ["sessions.family"],
    // A child, a fork or a partner is not known before it is read.
    ({ event, payload }) =>
      event === "session.created" ||
      event === "run.queued" ||
      ("sessionKey" in payload && keys.has(payload.sessionKey ?? "")),
  );
  return family;
}

/** The runs of a user that wait for an approval, and the keys of their sessions. */
export function useNeedsYou({ userId }: SessionPlace): ReadonlySet<string> {
  const { client } = useGateway();
  const { approvals } = useDesk();
  return useMemo(() => {
    const owner = ownerOf(client, { userId });
    const own = approvals.filter((approval) => ownerOf(client, approval) === owner);
    return new Set(own.flatMap(({ runId, sessionKey }) => [runId, sessionKey]));
  }, [client, approvals, userId]);
}

export type Tone = "done" | "failed" | "aborted" | "needs-you" | "waiting" | "queued" | "running";

export function toneOf({ runId, state }: Span, needsYou: ReadonlySet<string>): Tone {
  if (needsYou.has(runId)) return "needs-you";
  switch (state) {
    case "error":
    case "timeout":
      return "failed";
    case "waiting":
    case "sleeping":
      return "waiting";
    case "ok":
    case "merged":
      return "done";
    default:
      return state;
  }
}

export const toneNames: Record<Tone, string> = {
  done: "Done",
  failed: "Failed",
  aborted: "Aborted",
  "needs-you": "Needs you",
  waiting: "Waiting",
  queued: "Queued",
  running: "Running",
};

export const edgeNames: Record<Edge["kind"], string> = {
  spawn: "Spawn",
  send: "Message",
  reply: "Reply",
  announce: "Result",
  fork: "Fork",
};

/** Where an edge leads: to the entry that arrived, otherwise to the one that caused it. */
export function edgePath({ fromKey, fromEntryId, toKey, toEntryId }: Edge, { userId }: SessionPlace): string {
  const user = userParam({ userId });
  if (toEntryId === undefined && fromEntryId !== undefined) {
    return sessionPath({ key: fromKey, ...user }, "", { entry: fromEntryId });
  }
  return sessionPath({ key: toKey, ...user }, "", { entry: toEntryId });
}
