import { Link } from "wouter";
import { plainText } from "../ui/plain-text.ts";
import { duration, fullTime } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import type { RunRow } from "./run-state.tsx";
import styles from "./run-why.module.css";
import { workPath } from "./runs-path.ts";

type Why = NonNullable<RunRow["why"]>;

/** Why a run does not run, with a link to what it waits for. */
export function RunWhy({ why, tabIndex }: { readonly why: Why; readonly tabIndex?: number }) {
  const link = linkOf(why);
  return (
    <span className={styles.why} data-needs={why.kind === "approval" || undefined}>
      {plainText(why.text)}
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

function linkOf({
  kind,
  approvalId,
  runIds = [],
  lane,
}: Why): { readonly name: string; readonly href: string } | null {
  if (approvalId !== undefined)
    return { name: "Answer it", href: workPath("approvals", { approval: approvalId }) };
  const [first] = runIds;
  if (first !== undefined) {
    return {
      name: runIds.length === 1 ? "Show that run" : "Show the first",
      href: workPath("runs", { run: first }),
    };
  }
  if (kind === "lane" && lane !== undefined)
    return { name: "Show the lane", href: workPath("runs", { lane }) };
  return null;
}

function Countdown({ at, isExact }: { readonly at: number; readonly isExact: boolean }) {
  const left = at - useNow();
  if (left <= 0) return null;
  return (
    <time title={fullTime(at)}>
      {" "}
      (in {duration(left)}
      {isExact ? "" : " at the latest"})
    </time>
  );
}
