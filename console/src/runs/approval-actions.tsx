import type { RefObject } from "react";
import { useEffect, useState } from "react";
import { errorText, useGateway, useMay } from "../connect/gateway.tsx";
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
  const { client } = useGateway();
  const mayAnswer = useMay("approvals.resolve");
  const [note, setNote] = useState<string | null>(null);
  const [isSending, setIsSending] = useState(false);
  const [error, setError] = useState<string | null>(null);

  const answer = async (isApproved: boolean) => {
    setIsSending(true);
    setError(null);
    try {
      await client.call("approvals.resolve", {
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
            disabled={isSending}
            onClick={() => void answer(true)}
          >
            Approve {hasKeys && <Kbd keys="a" />}
          </button>
          <button
            type="button"
            className={buttons.button}
            data-act="deny"
            data-takes-focus
            disabled={isSending}
            onClick={() => setNote("")}
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
          <button key="submit" type="submit" className={buttons.button} disabled={isSending}>
            Deny
          </button>
        </>
      )}
    </form>
  );
}

/** Lets `a` and `d` answer one question in a list by pressing its buttons. */
export function useAnswerKeys(list: RefObject<HTMLElement | null>, approvalId: string | null): void {
  const press = (act: "approve" | "deny") => {
    if (approvalId === null) return null;
    const button = `[data-roving="${CSS.escape(approvalId)}"] [data-act=${act}]`;
    return () => list.current?.querySelector<HTMLElement>(button)?.click();
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
