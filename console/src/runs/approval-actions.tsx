import type { RefObject } from "react";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { errorText, useChange, useMay, useOffline } from "../connect/gateway.tsx";
import type { Approval } from "../live/desk.ts";
import { userParam } from "../paths.ts";
import buttons from "../ui/button.module.css";
import { isInputMethod, Kbd, useKeys } from "../ui/keys.tsx";
import styles from "./approval-question.module.css";

/** Approve and deny buttons. A denial can include a reason for the model. */
export function ApprovalActions({
  approval,
  hasKeys,
}: {
  readonly approval: Approval;
  /** Whether the keys `a` and `d` press these buttons. */
  readonly hasKeys: boolean;
}) {
  const change = useChange();
  const offline = useOffline();
  const mayAnswer = useMay("approvals.resolve");
  const [note, setNote] = useState<string | null>(null);
  const [isSending, setIsSending] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const form = useRef<HTMLFormElement>(null);
  const isSettled = useIsSettled(form);
  const guard = {
    disabled: isSending,
    ...(isSettled ? offline : { "aria-disabled": true, onClick: undefined }),
  };

  const answer = async (isApproved: boolean) => {
    setIsSending(true);
    setError(null);
    try {
      await change("approvals.resolve", {
        approvalId: approval.approvalId,
        ...userParam(approval),
        answer: isApproved ? "approved" : "denied",
        ...(isApproved || note === null || note.trim() === "" ? {} : { note: note.trim() }),
      });
    } catch (failure) {
      setError(errorText(failure));
    } finally {
      setIsSending(false);
    }
  };

  if (!mayAnswer) return null;
  return (
    <form
      ref={form}
      className={styles.actions}
      onSubmit={(event) => {
        event.preventDefault();
        void answer(false);
      }}
    >
      {error !== null && <span role="alert">{error}</span>}
      {note === null ? (
        <>
          <button
            type="button"
            className={buttons.button}
            data-look="alarm"
            data-act="approve"
            onClick={() => void answer(true)}
            {...guard}
          >
            Approve {hasKeys && <Kbd keys="a" />}
          </button>
          <button
            type="button"
            className={buttons.button}
            data-act="deny"
            data-takes-focus
            onClick={() => setNote("")}
            {...guard}
          >
            Deny… {hasKeys && <Kbd keys="d" />}
          </button>
        </>
      ) : (
        <>
          <input
            autoFocus
            value={note}
            maxLength={1000}
            aria-label="Reason, for the model (optional)"
            placeholder="Reason (optional)"
            onChange={({ target }) => setNote(target.value)}
            onKeyDown={(event) => {
              if (event.key === "Escape" && !isInputMethod(event)) setNote(null);
            }}
          />
          {/* Another element than the button before, whose click would submit the form. */}
          <button key="submit" type="submit" className={buttons.button} disabled={isSending} {...offline}>
            Deny <Kbd keys="Enter" />
          </button>
          {/* The last one, because the second tap of a double tap on the button before hits it. */}
          <button type="button" className={buttons.button} data-look="quiet" onClick={() => setNote(null)}>
            Cancel <Kbd keys="Escape" />
          </button>
        </>
      )}
    </form>
  );
}

/** How long a question must have been in its position before it can be answered. */
const settleMs = 600;

/**
 * Whether the buttons have been in their position long enough for the user to notice. Otherwise, a click is probably
 * meant for another question, whose position these buttons have taken. Scrolling does not count.
 */
function useIsSettled(buttons: RefObject<HTMLElement | null>): boolean {
  const [isSettled, setIsSettled] = useState(false);
  const position = useRef<number | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  // Runs on every render, because every change to the list around the question also renders the question.
  useLayoutEffect(() => {
    if (buttons.current === null) return;
    let top = buttons.current.getBoundingClientRect().top;
    for (let around = buttons.current.parentElement; around !== null; around = around.parentElement)
      top += around.scrollTop;
    if (position.current !== null && Math.abs(top - position.current) < 1) return;
    position.current = top;
    setIsSettled(false);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setIsSettled(true), settleMs);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  return isSettled;
}

/**
 * Lets `a` and `d` answer one question in a list by pressing its buttons. After an answer, the keys do nothing for a
 * moment, so that they do not answer the next question by accident.
 */
export function useAnswerKeys(list: RefObject<HTMLElement | null>, approvalId: string | null): void {
  const target = useRef(approvalId);
  const pausedUntil = useRef(0);
  const find = (id: string, part: string) =>
    list.current?.querySelector<HTMLElement>(`[data-roving="${CSS.escape(id)}"]${part}`) ?? null;
  useLayoutEffect(() => {
    const before = target.current;
    target.current = approvalId;
    if (before !== null && before !== approvalId && find(before, "[data-open]") === null)
      pausedUntil.current = performance.now() + settleMs;
  }, [approvalId]);
  const press = (act: "approve" | "deny") => {
    if (approvalId === null) return null;
    return () => {
      if (performance.now() >= pausedUntil.current) find(approvalId, ` [data-act=${act}]`)?.click();
    };
  };
  useKeys({ a: press("approve"), d: press("deny") });
}

/** Becomes `true` at the given time, without asking the gateway. */
export function useIsPast(at: number): boolean {
  const [isPast, setIsPast] = useState(() => at <= Date.now());
  useEffect(() => {
    // Timers longer than 24 days overflow. An approval with such a deadline does not expire while the page is open.
    const left = Math.min(at - Date.now(), 2 ** 31 - 1);
    const timer = setTimeout(() => setIsPast(true), Math.max(0, left));
    return () => clearTimeout(timer);
  }, [at]);
  return isPast;
}
