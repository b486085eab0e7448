import { Link } from "wouter";
import { runsPath } from "../paths.ts";
import { duration, fullTime } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import type { RunRow } from "./run-state.tsx";
import styles from "./run-why.module.css";

type Why = NonNullable<RunRow["why"]>;

/** Why a run is not running, with a link to what it is waiting for. */
export function RunWhy({
  why,
  owner,
  details,
  tabIndex,
}: {
  readonly why: Why;
  /** The run. The linked runs belong to the same user. */
  readonly owner: Pick<RunRow, "userId">;
  /** The URL of the run's panel, which shows its steps and actions. Absent in the panel itself. */
  readonly details?: string;
  readonly tabIndex?: number;
}) {
  const link = linkOf(why, owner) ?? (details === undefined ? null : { name: "Show details", href: details });
  return (
    <span className={styles.why} data-needs={why.kind === "approval" || undefined}>
      {why.text}
      {why.retryAt !== undefined && <Countdown at={why.retryAt} isExact={why.kind === "retry"} />}
      {link !== null && (
        <>
          {" "}
          <Link href={link.href} {...(tabIndex === undefined ? {} : { tabIndex })}>
            {link.name}
          </Link>
        </>
      )}
    </span>
  );
}

function linkOf(
  { kind, approvalId, runIds = [], lane }: Why,
  { userId }: Pick<RunRow, "userId">,
): { readonly name: string; readonly href: string } | null {
  if (approvalId !== undefined)
    return { name: "Review approval", href: runsPath("approvals", { approval: approvalId }) };
  const [first] = runIds;
  if (first !== undefined) {
    return {
      name: runIds.length === 1 ? "Open run" : "Open the first run",
      href: runsPath("runs", { run: first, user: userId }),
    };
  }
  if (kind === "lane" && lane !== undefined)
    return { name: "Show the lane", href: runsPath("runs", { lane }) };
  return null;
}

function Countdown({ at, isExact }: { readonly at: number; readonly isExact: boolean }) {
  const left = at - useNow();
  if (left <= 0) return null;
  return (
    <time title={fullTime(at)}>
      {" "}
      ({isExact ? "in" : "within"} {duration(left)})
    </time>
  );
}
