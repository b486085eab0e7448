import { ChevronRight } from "lucide-react";
import { Fragment, useMemo } from "react";
import { Link } from "wouter";
import { useCall } from "../connect/gateway.tsx";
import type { Approval } from "../live/desk.ts";
import { useSessionNames } from "../live/session-names.ts";
import { sessionPath, userParam } from "../paths.ts";
import { FoldScope, useOpened } from "../ui/foldable.tsx";
import { foldText } from "../ui/plain-text.ts";
import type { useRoving } from "../ui/roving.ts";
import { FullName } from "../ui/session-head.tsx";
import { threadOf } from "../ui/theme.ts";
import { ago, duration, fullTime } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import { ApprovalActions, useIsPast } from "./approval-actions.tsx";
import styles from "./approval-question.module.css";

interface ApprovalQuestionProps {
  readonly approval: Approval;
  /** Set if the approval was answered while the row kept its position. */
  readonly isGone: boolean;
  readonly isWanted?: boolean;
  /** Whether the keys `a` and `d` answer this question. */
  readonly hasKeys?: boolean;
  /** Whether the question is in a list with a single tab stop. */
  readonly focus?: ReturnType<ReturnType<typeof useRoving>["item"]>;
}

/** A tool call that needs approval: the requesting session with its ancestors, and what the call would do. */
export function ApprovalQuestion({ isGone, isWanted, hasKeys, focus, ...props }: ApprovalQuestionProps) {
  const approval = useAnswer(props.approval, isGone);
  const { approvalId, toolName, answer, note, sessionId } = approval;
  const isExpired = useIsPast(approval.expiresAt);
  const isOpen = answer === undefined && !isGone && !isExpired;
  return (
    <article
      className={styles.question}
      data-thread={threadOf(sessionId)}
      data-wanted={(isWanted === true && isOpen) || undefined}
      data-open={isOpen || undefined}
      aria-label={`${toolName} in ${approval.sessionKey}`}
      {...focus}
    >
      <header className={styles.head}>
        <Path approval={approval} />
        <Times approval={approval} isOpen={isOpen} />
      </header>
      <div className={styles.call}>
        <code className={styles.tool}>{toolName}</code>
        {isOpen ? (
          <ApprovalActions approval={approval} hasKeys={hasKeys === true} />
        ) : (
          <Outcome approval={approval} isExpired={isExpired} />
        )}
      </div>
      {/* Keeps the arguments expanded when the virtual list unmounts this row and mounts it again. */}
      <FoldScope value={`approval ${approvalId}`}>
        <Arguments args={approval.arguments} />
      </FoldScope>
      {note !== undefined && <p className={styles.note}>{note}</p>}
    </article>
  );
}

/**
 * Reads the approval with its answer. Once an approval has been answered, the list of pending approvals no longer
 * contains it.
 */
function useAnswer(approval: Approval, isGone: boolean): Approval {
  const { approvalId, runId, answer } = approval;
  const { data } = useCall(
    "approvals.list",
    { open: false, runId, limit: 500, ...userParam(approval) },
    { isEnabled: isGone && answer === undefined, staleMs: 0 },
  );
  return data?.approvals.find((each) => each.approvalId === approvalId) ?? approval;
}

const answerWords = { approved: "Approved", denied: "Denied", expired: "Expired" } as const;

/** Shows the outcome of the question, when it was answered, and by whom. */
function Outcome({ approval, isExpired }: { readonly approval: Approval; readonly isExpired: boolean }) {
  const { answer = isExpired ? "expired" : undefined, resolvedAt, expiresAt, by } = approval;
  const now = useNow();
  if (answer === undefined) return <span className={styles.answer}>Answered</span>;
  const at = resolvedAt ?? expiresAt;
  return (
    <span className={styles.answer} data-answer={answer}>
      {answerWords[answer]} <time title={fullTime(at)}>{ago(at, now).replace(/^now$/, "just now")}</time>
      {by !== undefined && ` by ${by}`}
    </span>
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
            {index === 0 ? (
              <FullName row={names.rowOf({ key, label, ...user })} />
            ) : (
              <bdi>{names.nameOf({ key, label, ...user })}</bdi>
            )}
          </Link>
        </Fragment>
      ))}
    </div>
  );
}

function Times({
  approval: { requestedAt, expiresAt },
  isOpen,
}: {
  readonly approval: Approval;
  readonly isOpen: boolean;
}) {
  const now = useNow(isOpen);
  const left = expiresAt - now;
  return (
    <span className={styles.times}>
      <time title={fullTime(requestedAt)}>asked {ago(requestedAt, now)}</time>
      {isOpen && left > 0 && <span title={fullTime(expiresAt)}>expires in {duration(left)}</span>}
    </span>
  );
}

/**
 * Each argument is on its own line. Strings are shown as is, everything else as JSON. If there are very many arguments,
 * only the first ones are mounted, because a call can have more arguments than a page can show.
 */
function Arguments({ args }: { readonly args: Approval["arguments"] }) {
  const [step, setStep] = useOpened("arguments");
  const entries = Object.entries(args);
  if (entries.length === 0) return <p className={styles.none}>without arguments</p>;
  // 20, 220, 1,020, 4,220 and so on
  const shown = entries.slice(0, 20 + (200 * (4 ** step - 1)) / 3);
  const hidden = entries.length - shown.length;
  return (
    <>
      <dl className={styles.arguments}>
        {shown.map(([name, value]) => (
          <Fragment key={name}>
            <dt>
              <Value name={`name ${name}`} text={name} headChars={60} />
            </dt>
            <dd>
              <Value
                name={`value of ${name}`}
                text={typeof value === "string" ? value : JSON.stringify(value, null, 2)}
              />
            </dd>
          </Fragment>
        ))}
      </dl>
      {hidden > 0 && (
        <button type="button" className={styles.more} onClick={() => setStep(step + 1)}>
          … {hidden.toLocaleString("en")} more {hidden === 1 ? "argument" : "arguments"} hidden. Show more
        </button>
      )}
    </>
  );
}

/** Shows a long value as its beginning and end, with a description of the hidden part between them. */
function Value({
  name,
  text,
  headChars: firstChars = 400,
}: {
  readonly name: string;
  readonly text: string;
  /** How many characters of a long value are shown at first. */
  readonly headChars?: number;
}) {
  const [step, setStep] = useOpened(name);
  const folded = useMemo(() => {
    const [headLines, headChars] = step === 0 ? [6, firstChars] : [200 * 10 ** step, 10_000 * 10 ** step];
    return foldText(text, { headLines, headChars, tailLines: 2, tailChars: firstChars / 4 });
  }, [text, step, firstChars]);
  if (folded === null) return <>{text}</>;
  return (
    <>
      {folded.head}
      <button type="button" className={styles.more} onClick={() => setStep(step + 1)}>
        … {folded.hidden} hidden. Show more
      </button>
      {folded.tail}
    </>
  );
}
