import { ChevronRight } from "lucide-react";
import { Fragment } from "react";
import { Link } from "wouter";
import type { Approval } from "../live/desk.ts";
import { useSessionNames } from "../live/session-names.ts";
import { sessionPath, userParam } from "../paths.ts";
import { plainText } from "../ui/plain-text.ts";
import { threadOf } from "../ui/theme.ts";
import { ago, duration, fullTime } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import { ApprovalActions, useIsPast } from "./approval-actions.tsx";
import styles from "./approval-question.module.css";

interface ApprovalQuestionProps {
  readonly approval: Approval;
  /** Answered while the pointer was over the list. */
  readonly isGone: boolean;
  readonly isWanted: boolean;
  /** In a list that takes the keys of its questions. */
  readonly focus?: { readonly tabIndex: number; readonly onFocus: () => void };
}

/** A tool call that asks: who asks, with the sessions above it, and what it would do. */
export function ApprovalQuestion({ approval, isGone, isWanted, focus }: ApprovalQuestionProps) {
  const { toolName, arguments: args, answer, by, note, sessionId } = approval;
  const isExpired = useIsPast(approval.expiresAt);
  const isOpen = answer === undefined && !isGone && !isExpired;
  return (
    <article
      className={styles.question}
      data-thread={threadOf(sessionId)}
      data-wanted={(isWanted && isOpen) || undefined}
      data-open={isOpen || undefined}
      aria-label={`${toolName} in ${approval.sessionKey}`}
      {...focus}
    >
      <header className={styles.head}>
        <Path approval={approval} />
        <Times approval={approval} isOpen={isOpen} />
      </header>
      <div className={styles.call}>
        <code className={styles.tool}>{plainText(toolName)}</code>
        {isOpen ? (
          <ApprovalActions approval={approval} hasKeys={focus !== undefined} />
        ) : (
          <span className={styles.answer} data-answer={answer}>
            {answer ?? (isExpired ? "expired" : "answered")}
            {by !== undefined && ` by ${plainText(by)}`}
          </span>
        )}
      </div>
      <Arguments args={args} />
      {note !== undefined && <p className={styles.note}>{plainText(note)}</p>}
    </article>
  );
}

function Path({ approval }: { readonly approval: Approval }) {
  const names = useSessionNames();
  const user = userParam(approval);
  return (
    <div className={styles.path} role="group" aria-label="Path from the root">
      {approval.path.map(({ key, label }, index) => (
        <Fragment key={key}>
          {index > 0 && <ChevronRight size={12} aria-hidden />}
          <Link
            href={sessionPath({ key, ...user })}
            className={styles.session}
            data-thread={threadOf(names.idOf({ key, ...user }))}
          >
            {index === 0 ? names.fullNameOf({ key, label, ...user }) : names.nameOf({ key, label, ...user })}
          </Link>
        </Fragment>
      ))}
    </div>
  );
}

function Times({
  approval: { requestedAt, expiresAt, resolvedAt },
  isOpen,
}: {
  readonly approval: Approval;
  readonly isOpen: boolean;
}) {
  const now = useNow(isOpen);
  const left = expiresAt - now;
  return (
    <span className={styles.times}>
      <time title={fullTime(resolvedAt ?? requestedAt)}>{ago(resolvedAt ?? requestedAt, now)}</time>
      {isOpen && left > 0 && <span title={fullTime(expiresAt)}>expires in {duration(left)}</span>}
    </span>
  );
}

/** Each argument on its own line. Texts are shown as they are; everything else as JSON. */
function Arguments({ args }: { readonly args: Readonly<Record<string, unknown>> }) {
  const entries = Object.entries(args);
  if (entries.length === 0) return <p className={styles.none}>without arguments</p>;
  return (
    <dl className={styles.arguments}>
      {entries.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{plainText(name)}</dt>
          <dd tabIndex={isLong(value) ? 0 : undefined}>
            {plainText(typeof value === "string" ? value : JSON.stringify(value, null, 2))}
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** Long values scroll, and what scrolls must be reachable by keyboard. */
function isLong(value: unknown): boolean {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return text.length > 400 || text.split("\n").length > 8;
}
