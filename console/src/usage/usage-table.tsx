import { useMemo } from "react";
import { Link } from "wouter";
import { useSessionNames } from "../live/session-names.ts";
import { placeOf, sessionPath, userParam } from "../paths.ts";
import { FullName } from "../ui/session-head.tsx";
import { dollars } from "../ui/time.ts";
import styles from "./usage-page.module.css";
import type { Grouping, Part, UsageRow } from "./usage-page.tsx";

interface UsageTableProps {
  readonly rows: readonly UsageRow[];
  readonly by: Grouping;
  readonly name: string;
  readonly hrefOf: (group: Part["group"], value: string) => string;
}

/** Selecting a row opens the sessions that the row covers, or its own session. */
export function UsageTable({ rows, by, name, hrefOf }: UsageTableProps) {
  const sessions = useMemo(
    () =>
      rows.flatMap(({ sessionKey, userId }) =>
        sessionKey === undefined ? [] : [{ key: sessionKey, ...userParam({ userId }) }],
      ),
    [rows],
  );
  const names = useSessionNames(sessions);
  const headOf = (row: UsageRow) => {
    if (by === "session") {
      const { sessionKey } = row;
      if (sessionKey === undefined) return "Other";
      const place = placeOf({ sessionKey, userId: row.userId });
      return (
        <Link href={sessionPath(place)}>
          <FullName row={names.rowOf(place)} />
        </Link>
      );
    }
    const value = { model: row.model, agent: row.agentId, user: row.userId ?? "" }[by];
    if (value === undefined) return "Other";
    return <Link href={hrefOf(by, value)}>{value === "" ? "default user" : value}</Link>;
  };
  if (rows.length === 0) return <p>No usage in this period. Each answer of a model adds to it.</p>;
  return (
    <div data-scroll-cue className={styles.scroller} role="region" aria-label="Usage table" tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>
            {[name, "Answers", "Input", "Output", "Cache read", "Tokens", "Cost", "Unpriced"].map((each) => (
              <th key={each} scope="col">
                {each}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={JSON.stringify([row.sessionKey, row.userId, row.model, row.agentId])}>
              <th scope="row">{headOf(row)}</th>
              {[row.answers, row.input, row.output, row.cacheRead, row.totalTokens].map((value, index) => (
                <td key={index}>{value.toLocaleString("en")}</td>
              ))}
              <td>{dollars(row.costUsd)}</td>
              <td>{row.unpricedTokens === 0 ? "" : row.unpricedTokens.toLocaleString("en")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
