import { createContext, useContext } from "react";

/** Which session a page is about. */
export interface SessionPlace {
  readonly key: string;
  /** Only for a token for all users. */
  readonly userId?: string;
}

const PlaceContext = createContext<SessionPlace>({ key: "main" });
export const SessionPlaceProvider = PlaceContext.Provider;

export function useSessionPlace(): SessionPlace {
  return useContext(PlaceContext);
}

/** The address of a view of a session. */
export function sessionPath(
  { key, userId }: SessionPlace,
  view: "" | "tree" | "context" | "family" = "",
  more: Readonly<Record<string, string | undefined>> = {},
): string {
  const query = new URLSearchParams();
  if (userId !== undefined) query.set("user", userId);
  for (const [name, value] of Object.entries(more)) if (value !== undefined) query.set(name, value);
  const text = query.toString();
  return `/s/${encodeURIComponent(key)}${view === "" ? "" : `/${view}`}${text === "" ? "" : `?${text}`}`;
}
