import type { ReactNode } from "react";
import { createContext, useContext, useMemo } from "react";
import { CallError } from "skein/client";
import { Link, useParams, useSearchParams } from "wouter";
import { useCall, useGateway } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { isMain, useHome } from "../live/home.ts";
import type { NamedRow } from "../live/session-row.ts";
import { rowName, shownUser } from "../live/session-row.ts";
import type { SessionPlace } from "../paths.ts";
import { decodeKey, sessionPath, userParam } from "../paths.ts";
import { Notice } from "./notice.tsx";
import { useTitle } from "./page.tsx";
import styles from "./session-head.module.css";
import { threadOf } from "./theme.ts";

const views = [
  ["", "Transcript"],
  ["family", "Family"],
  ["tree", "Tree"],
  ["context", "What the model sees"],
] as const;

const PlaceContext = createContext<SessionPlace>({ key: "main" });
export const SessionPlaceProvider = PlaceContext.Provider;

/** The session for the components below a provider. */
export function useSessionPlace(): SessionPlace {
  return useContext(PlaceContext);
}

/** The session named by the route. A short name is resolved, because events and approvals have the full key. */
export function useRoutePlace(): SessionPlace {
  const { key: encoded = "main" } = useParams<{ key: string }>();
  const [query] = useSearchParams();
  const userId = query.get("user");
  const name = decodeKey(encoded);
  const home = useHome();
  const isShort = !name.startsWith("agent:");
  const found = useCall("sessions.get", { key: name, ...userParam({ userId }) }, { isEnabled: isShort });
  const full = found.data?.key ?? (name === "main" ? home.place?.key : undefined);
  const key = isShort ? (full ?? name) : name;
  return useMemo(() => ({ key, ...userParam({ userId }) }), [key, userId]);
}

/** A session's name in a list. A helper's task follows its label. */
export function SessionName({ name, task }: { readonly name: ReactNode; readonly task: string }) {
  return (
    <>
      <bdi>{name}</bdi>
      {task !== "" && (
        <span className={styles.task}>
          {" "}
          <bdi>{task}</bdi>
        </span>
      )}
    </>
  );
}

/** Shows the same text as `fullName`. A name written from right to left does not trade places with the user's name. */
export function FullName({ row }: { readonly row: NamedRow }) {
  const user = shownUser(useGateway().client, row);
  return (
    <>
      <bdi>{rowName(row)}</bdi>
      {user !== null && (
        <>
          {" "}
          · <bdi>{user}</bdi>
        </>
      )}
    </>
  );
}

/** A page about one session: its name, its other views, and content that handles its own scrolling. */
export function SessionViewPage({
  place,
  view,
  tools,
  children,
}: {
  readonly place: SessionPlace;
  readonly view: (typeof views)[number][0];
  readonly tools?: ReactNode;
  readonly children: ReactNode;
}) {
  const details = useCall("sessions.get", place, { staleMs: 1000 });
  const sessionKey = details.data?.key ?? place.key;
  useRefresh(
    ["sessions.get"],
    ({ event, payload }) =>
      (event === "run.ended" || event.startsWith("session.")) &&
      "sessionKey" in payload &&
      payload.sessionKey === sessionKey,
  );
  const isMissing = details.error instanceof CallError && details.error.code === "not_found";
  const { sessionId } = details.data ?? { sessionId: place.key };
  const name = rowName(details.data ?? place);
  // An agent and a page may have the same name.
  const viewName = `${views.find(([each]) => each === view)?.[1]} of session ${name}`;
  useTitle(view === "" ? `Session ${name}` : viewName);
  return (
    <section className={styles.page} data-thread={threadOf(sessionId)} aria-label={viewName}>
      <header className={styles.head}>
        <span className={styles.thread} aria-hidden />
        <h1 className={styles.title}>
          <span className={styles.kind}>Session</span> <bdi>{name}</bdi>
        </h1>
        <nav className={styles.views} aria-label="Views of this session">
          {views.map(([each, text]) => (
            <Link
              key={each}
              href={sessionPath(place, each)}
              aria-current={each === view ? "page" : undefined}
            >
              {text}
            </Link>
          ))}
        </nav>
        {tools !== undefined && <div className={styles.tools}>{tools}</div>}
      </header>
      <div className={styles.body}>
        {view !== "" && isMissing && isMain(place.key) ? (
          <Notice text="No messages yet. The first one creates this session.">
            <Link href={sessionPath(place)}>Write a message</Link>
          </Notice>
        ) : (
          children
        )}
      </div>
    </section>
  );
}
