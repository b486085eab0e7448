import { useEffect, useMemo } from "react";
import { useCall, useGateway } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { useDesk } from "../frame.tsx";
import type { Approval } from "../live/desk.ts";
import { maxApprovals } from "../live/desk.ts";
import { usersParam } from "../paths.ts";
import { ErrorLine, ErrorNotice, Notice } from "../ui/notice.tsx";
import { useRoving } from "../ui/roving.ts";
import { FreshRows, useSteady } from "../ui/steady.tsx";
import { useAnswerKeys } from "./approval-actions.tsx";
import { ApprovalQuestion } from "./approval-question.tsx";
import styles from "./approvals-tab.module.css";

/** `/runs?tab=approvals&approval=`: tool calls that are waiting for a person, followed by answered ones. */
export function ApprovalsTab({ wanted }: { readonly wanted: string | null }) {
  const { approvals, status, error, desk } = useDesk();
  const answered = useAnswered();
  const open = useMemo(
    () => approvals.map((approval) => ({ id: approval.approvalId, approval })),
    [approvals],
  );
  const steady = useSteady(open);
  const { items, isGone } = steady;
  const ids = useMemo(() => items.map(({ id }) => id), [items]);
  const roving = useRoving(ids);
  const isWantedOpen = wanted !== null && ids.includes(wanted);
  useEffect(() => {
    if (isWantedOpen && wanted !== null)
      roving.list.current?.querySelector<HTMLElement>(`[data-roving="${CSS.escape(wanted)}"]`)?.focus();
  }, [isWantedOpen, wanted, roving.list]);

  // Approvals that were answered under the pointer keep their positions in the list above.
  const earlier = answered.list.filter(({ approvalId }) => !ids.includes(approvalId));

  useAnswerKeys(roving.list, roving.stop);

  if (status === "failed" && error !== null)
    return <ErrorNotice error={error} onRetry={() => void desk.reload()} />;
  if (status === "loading") return <Notice text="Loading…" isBusy />;
  return (
    <div className={styles.tab} {...steady.hold}>
      <FreshRows steady={steady} />
      <div ref={roving.list} className={styles.list} onKeyDown={roving.onKeyDown}>
        {wanted !== null && !isWantedOpen && (
          <p className={styles.notice}>That approval was answered or has expired.</p>
        )}
        {approvals.length >= maxApprovals && (
          <p className={styles.notice}>
            Only the {maxApprovals} newest approvals are shown. Older ones appear as you answer these.
          </p>
        )}
        {items.length === 0 ? (
          <p className={styles.empty}>
            Nothing needs your attention. Tool calls that need approval appear here, no matter how deep their
            session is.
          </p>
        ) : (
          <section aria-label="Needs you">
            {items.map(({ id, approval }) => (
              <ApprovalQuestion
                key={id}
                approval={approval}
                isGone={isGone(id)}
                isWanted={id === wanted}
                hasKeys={id === roving.stop}
                focus={roving.item(id)}
              />
            ))}
          </section>
        )}
        {answered.error !== null && <ErrorLine error={answered.error} />}
        {earlier.length > 0 && (
          <section className={styles.answered} aria-label="Answered">
            <h2 className={styles.head}>Answered</h2>
            {earlier.map((approval) => (
              <ApprovalQuestion key={approval.approvalId} approval={approval} isGone={false} />
            ))}
          </section>
        )}
      </div>
    </div>
  );
}

function useAnswered(): { readonly list: readonly Approval[]; readonly error: Error | null } {
  const { client } = useGateway();
  useRefresh(["approvals.list"], ({ event }) => event === "approval.resolved");
  const { data, error } = useCall(
    "approvals.list",
    { open: false, limit: 50, ...usersParam(client) },
    { keepsPrevious: true },
  );
  return { list: (data?.approvals ?? []).filter(({ answer }) => answer !== undefined), error };
}
