import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import type { Result } from "skein/client";
import { useCall, useEvents } from "../connect/gateway.tsx";
import type { SessionPlace } from "../session/session-place.ts";
import { sessionPath } from "../session/session-place.ts";

export type Family = Result<"sessions.family">;
export type Member = Family["nodes"][number];
export type Span = Family["spans"][number];
export type Edge = Family["edges"][number];

const rereadMs = 250;

/** The family of a session, read again soon after an event of one of its members. */
export function useFamily({ key, userId }: SessionPlace) {
  const params = useMemo(() => ({ key, ...(userId === undefined ? {} : { userId }) }), [key, userId]);
  const family = useCall("sessions.family", params, { keepsPrevious: true, staleMs: 0 });
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const keys = useMemo(() => new Set(family.data?.nodes.map((member) => member.key)), [family.data]);
  useEvents(({ event, payload }) => {
    // A child, a fork or a partner is not known before it is read.
    const mayBeNew = event === "gap" || event === "session.created" || event === "run.queued";
    if (!mayBeNew && !keys.has(payload.sessionKey)) return;
    timer.current ??= setTimeout(() => {
      timer.current = null;
      void queries.invalidateQueries({ queryKey: ["sessions.family", params] });
    }, rereadMs);
  });
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
  return family;
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
  const user = userId === undefined ? {} : { userId };
  if (toEntryId === undefined && fromEntryId !== undefined) {
    return sessionPath({ key: fromKey, ...user }, "", { entry: fromEntryId });
  }
  return sessionPath({ key: toKey, ...user }, "", { entry: toEntryId });
}
