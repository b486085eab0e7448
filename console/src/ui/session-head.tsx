import type { ReactNode } from "react";
import { useMemo } from "react";
import { Link, useParams, useSearchParams } from "wouter";
import { useCall, useConnectionState } from "../connect/gateway.tsx";
import { rowName } from "../live/desk.ts";
import type { SessionPlace } from "../session/session-place.ts";
import { sessionPath } from "../session/session-place.ts";
import styles from "./session-head.module.css";
import { threadOf } from "./thread.ts";

const views = [
  ["", "Transcript"],
  ["family", "Family"],
  ["tree", "Tree"],
  ["context", "What the model sees"],
] as const;

/** The session that the route names. */
export function useRoutePlace(): SessionPlace {
  const { key = "main" } = useParams<{ key: string }>();
  const [query] = useSearchParams();
  const userId = query.get("user");
  return useMemo(
    () => ({ key: decodeURIComponent(key), ...(userId === null ? {} : { userId }) }),
    [key, userId],
  );
}

/** A page about one session: its name, its other views, and the content, which scrolls by itself. */
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
  const connection = useConnectionState();
  const { sessionId } = details.data ?? { sessionId: place.key };
  const name = rowName(details.data ?? place);
  return (
    <section
      className={styles.page}
      data-thread={threadOf(sessionId)}
      aria-label={`${views.find(([each]) => each === view)?.[1]} of ${name}`}
    >
      <header className={styles.head}>
        <span className={styles.thread} aria-hidden />
        <h1 className={styles.title}>{name}</h1>
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
      {connection !== "open" && (
        <p className={styles.offline} role="status">
          The connection to the gateway is lost. Trying again; what you see may be out of date.
        </p>
      )}
      <div className={styles.body}>{children}</div>
    </section>
  );
}
