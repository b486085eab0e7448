import { useMemo } from "react";
import { Link } from "wouter";
import { errorText } from "../connect/gateway.tsx";
import type { SessionPlace } from "../paths.ts";
import { sessionPath } from "../paths.ts";
import type { Family } from "./family-data.ts";
import { useFamily, useNeedsYou } from "./family-data.ts";
import styles from "./family-lanes.module.css";
import { LanesView } from "./lanes-view.tsx";

/** The lanes next to a transcript, up to 320 px wide. */
export default function FamilyLanes({ place }: { readonly place: SessionPlace }) {
  const { data, error } = useFamily(place);
  const family = useMemo(() => (data === undefined ? undefined : withoutOtherWork(data)), [data]);
  const needsYou = useNeedsYou(place);
  return (
    <section className={styles.side} aria-label="Family">
      <header className={styles.head}>
        <h2>Family</h2>
        {family !== undefined && (
          <span className={styles.count}>
            {family.nodes.length === 1 ? "1 session" : `${family.nodes.length} sessions`}
          </span>
        )}
        <Link href={sessionPath(place, "family")}>Open</Link>
      </header>
      {family === undefined ? (
        <p className={error === null ? styles.note : styles.error} role="status">
          {error === null ? "Loading the family…" : errorText(error)}
        </p>
      ) : (
        <div className={styles.lanes}>
          <LanesView family={family} place={place} needsYou={needsYou} isCompact />
        </div>
      )}
    </section>
  );
}

/**
 * Omits the work that partners do for other sessions, which would take space from the family's own work. The partners'
 * state is still shown.
 */
function withoutOtherWork(family: Family): Family {
  const partners = new Set(family.nodes.filter(({ isPartner }) => isPartner).map(({ key }) => key));
  const exchanged = new Set(family.edges.map(({ runId }) => runId));
  const spans = family.spans.filter(({ key, runId }) => !partners.has(key) || exchanged.has(runId));
  return { ...family, spans };
}
