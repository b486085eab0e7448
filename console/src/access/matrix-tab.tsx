import type { FormEvent } from "react";
import { useState } from "react";
import { useLocation } from "wouter";
import { useCall, useGateway } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { useDesk } from "../frame.tsx";
import { isFinished } from "../live/desk.ts";
import { findHosts } from "../live/finished-children.ts";
import { idOf, rowName } from "../live/session-row.ts";
import { accessPath, ownerOf, userParam } from "../paths.ts";
import buttons from "../ui/button.module.css";
import { Kbd } from "../ui/keys.tsx";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { AccessMatrix, MatrixLegend } from "./access-matrix.tsx";
import styles from "./matrix-tab.module.css";
import { RuleTrace } from "./rule-trace.tsx";

const fewSessions = 24;
/** The largest matrix that the gateway returns. */
const maxSessions = 64;

interface MatrixTabProps {
  readonly from: string | null;
  readonly to: string | null;
  readonly userId: string | null;
  readonly action: string | null;
  /** Shows the 64 most recent sessions instead of 24. */
  readonly isWide: boolean;
}

/** Which sessions can see each other. Selecting a cell shows the rules that decided. */
export function MatrixTab({ from, to, userId, action, isWide }: MatrixTabProps) {
  const user = userParam({ userId });
  useRefresh(["access.matrix"], ({ event }) =>
    /^session\.(?:created|deleted|restored|archived)$/.test(event),
  );
  const { status } = useDesk();
  const keys = useRecentKeys(isWide ? maxSessions : fewSessions, userId);
  const recent = useCall(
    "access.matrix",
    { ...user, ...(keys === null ? {} : { keys }) },
    { keepsPrevious: true, isEnabled: status !== "loading" },
  );
  // The pair in the URL might not be among the most recent sessions.
  const listed = recent.data?.sessions.map(({ key }) => key) ?? [];
  const pair = from === null || to === null ? [] : [from, to];
  const isListed = recent.data === undefined || pair.every((key) => listed.includes(key));
  const extended = useCall(
    "access.matrix",
    { ...user, keys: [...new Set([...pair, ...listed])].slice(0, maxSessions) },
    { isEnabled: !isListed },
  );
  // If a session does not exist, the rules say so.
  const { data, error } = isListed || extended.error !== null ? recent : extended;
  const [, navigate] = useLocation();
  const here = { user: user.userId, most: isWide ? "64" : undefined };
  const open = (pair: { readonly from: string; readonly to: string }) =>
    navigate(accessPath({ ...pair, ...here }));
  const close = () => navigate(accessPath(here));
  return (
    <div className={styles.tab}>
      <div className={styles.main}>
        <div className={styles.top}>
          <PairForm key={`${from}\n${to}`} from={from ?? ""} to={to ?? ""} userId={userId} onAsk={open} />
          <MatrixLegend />
        </div>
        {error !== null ? (
          <ErrorNotice error={error} />
        ) : data === undefined ? (
          <Notice text="Checking every pair…" isBusy />
        ) : data.sessions.length === 0 ? (
          <Notice text="There are no sessions yet. To create one, send a message to main." />
        ) : (
          <AccessMatrix
            matrix={data}
            userId={userId}
            shown={from === null || to === null ? null : { from, to }}
            onOpen={open}
          />
        )}
      </div>
      {from !== null && to !== null && (
        <RuleTrace
          key={`${from}\n${to}`}
          from={from}
          to={to}
          userId={userId}
          action={action}
          onClose={close}
        />
      )}
    </div>
  );
}

/**
 * Returns the keys of the most recent sessions and of their finished sub-agents, which are folded and do not count
 * toward the limit. The list is read again only when the number of sessions changes. If rows moved with every message,
 * the matrix would be unreadable.
 */
function useRecentKeys(count: number, userId: string | null): string[] | null {
  const { client } = useGateway();
  const { rows, status } = useDesk();
  const [taken, setTaken] = useState<{ readonly of: string; readonly keys: string[] } | null>(null);
  if (status !== "ready") return null;
  const of = [count, rows.length, userId].join("\n");
  if (taken?.of === of) return taken.keys;
  const owner = ownerOf(client, { userId });
  const own = rows.filter((row) => ownerOf(client, row) === owner);
  const hosts = findHosts(own, (row) => isFinished(row));
  const next = own.filter((row) => !hosts.has(idOf(row)))[count];
  const listed = own.slice(0, next === undefined ? maxSessions : Math.min(maxSessions, own.indexOf(next)));
  const keys = listed.map(({ key }) => key);
  if (keys.length === 0) return null;
  setTaken({ of, keys });
  return keys;
}

/** Any pair, including sessions that the matrix omits. */
function PairForm({
  from,
  to,
  userId,
  onAsk,
}: {
  readonly from: string;
  readonly to: string;
  readonly userId: string | null;
  readonly onAsk: (pair: { readonly from: string; readonly to: string }) => void;
}) {
  const [asker, setAsker] = useState(from);
  const [target, setTarget] = useState(to);
  const { client } = useGateway();
  const { rows } = useDesk();
  const owner = ownerOf(client, { userId: userId ?? undefined });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (asker.trim() !== "" && target.trim() !== "") onAsk({ from: asker.trim(), to: target.trim() });
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <span>May</span>
      <input
        value={asker}
        list="access-sessions"
        aria-label="The requesting session"
        placeholder="session"
        onChange={(event) => setAsker(event.target.value)}
      />
      <span>see</span>
      <input
        value={target}
        list="access-sessions"
        aria-label="The target session"
        placeholder="session"
        onChange={(event) => setTarget(event.target.value)}
      />
      <button type="submit" className={buttons.button} disabled={asker.trim() === "" || target.trim() === ""}>
        Explain <Kbd keys="Enter" />
      </button>
      <datalist id="access-sessions">
        {rows
          .filter((row) => ownerOf(client, row) === owner)
          .slice(0, 200)
          .map((row) => (
            <option key={row.key} value={row.key}>
              {rowName(row)}
            </option>
          ))}
      </datalist>
    </form>
  );
}
