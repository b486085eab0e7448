import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import type { MethodName, ReceivedEvent } from "skein/client";
import { useEvents } from "./gateway.tsx";

const batchMs = 200;

/** Reads the results of these methods again after events that concern them. Events in quick succession cause one reading. */
export function useRefresh(
  methods: readonly MethodName[],
  concerns: (event: ReceivedEvent) => boolean,
): void {
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  useEvents((event) => {
    if (event.event !== "gap" && !concerns(event)) return;
    timer.current ??= setTimeout(() => {
      timer.current = null;
      for (const method of methods) void queries.invalidateQueries({ queryKey: [method] });
    }, batchMs);
  });
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
}
