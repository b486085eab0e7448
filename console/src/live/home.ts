import { useMemo } from "react";
import { useLocation, useSearchParams } from "wouter";
import { useCall, useGateway } from "../connect/gateway.tsx";
import type { SessionPlace } from "../paths.ts";
import { ownerOf, placeOfPath } from "../paths.ts";

/** The main session of the default agent, which the first page shows. `place` is `null` until it is known. */
export function useHome() {
  const { client } = useGateway();
  // The agents change only with the configuration, after which every result is read again.
  const { data, error } = useCall("agents.list", {}, { staleMs: Number.POSITIVE_INFINITY });
  const agent = data?.agents.find(({ isDefault }) => isDefault) ?? data?.agents[0] ?? null;
  const id = agent?.id;
  const place = useMemo(
    (): SessionPlace | null => (id === undefined ? null : { key: `agent:${id}:main` }),
    [id],
  );
  return {
    place,
    agent,
    isLoading: data === undefined && error === null,
    error,
    /** Whether a session is the home session. */
    has: ({ key, ...owner }: SessionPlace) =>
      (key === "main" || key === place?.key) && ownerOf(client, owner) === ownerOf(client, {}),
  };
}

/** Whether a key names the main session of an agent, which its first message creates. */
export function isMain(key: string): boolean {
  return key === "main" || /^agent:[^:]+:main$/.test(key);
}

/** The session that the page shows. */
export function useOpenPlace(): SessionPlace | null {
  const home = useHome();
  const [path] = useLocation();
  const [query] = useSearchParams();
  const place = placeOfPath(path, query);
  if (path === "/") return home.place;
  return place?.key === "main" && home.place !== null ? { ...place, key: home.place.key } : place;
}
