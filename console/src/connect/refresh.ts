import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import type { MethodName, ReceivedEvent } from "skein/client";
import { useEvents } from "./gateway.tsx";
import { SingleFlight } from "./single-flight.ts";

/**
 * Reads the results of these methods again after events that affect them. Events in quick succession cause a single
 * read.
 */
export function useRefresh(
  methods: readonly MethodName[],
  concerns: (event: ReceivedEvent) => boolean,
): void {
  const queries = useQueryClient();
  const reads = useRef<SingleFlight | null>(null);
  const names = methods.join(" ");
  useEffect(() => {
    const opened = new SingleFlight(async () => {
      for (const method of names.split(" ")) await queries.invalidateQueries({ queryKey: [method] });
    });
    reads.current = opened;
    return () => opened.close();
  }, [queries, names]);
  useEvents((event) => {
    if (event.event === "gap" || concerns(event)) reads.current?.requestSoon();
  });
}
