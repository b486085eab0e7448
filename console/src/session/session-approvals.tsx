import { useMemo } from "react";
import { useGateway } from "../connect/gateway.tsx";
import { useDesk } from "../frame.tsx";
import type { Approval } from "../live/desk.ts";
import { ApprovalQuestion } from "../runs/approval-question.tsx";
import { useSessionPlace } from "../ui/session-head.tsx";
import { FreshRows, useSteady } from "../ui/steady.tsx";
import styles from "./pending-inputs.module.css";

/** The pending approvals of a session and its descendants, oldest first. */
export function useSessionApprovals(): readonly Approval[] {
  const { approvals } = useDesk();
  const { client } = useGateway();
  const { key, userId = client.hello.userId } = useSessionPlace();
  return useMemo(
    () =>
      approvals.filter(
        (approval) => approval.userId === userId && approval.path.some((step) => step.key === key),
      ),
    [approvals, key, userId],
  );
}

/** The tool calls that are waiting for the user, who can answer them here. */
export function SessionApprovals() {
  const approvals = useSessionApprovals();
  const open = useMemo(
    () => approvals.map((approval) => ({ id: approval.approvalId, approval })),
    [approvals],
  );
  const steady = useSteady(open, undefined, false);
  const { items, isGone } = steady;
  return (
    <>
      <p role="status" className="visually-hidden">
        {open.length === 0
          ? ""
          : `${open.length} ${open.length === 1 ? "tool call needs" : "tool calls need"} you`}
      </p>
      {items.length > 0 && (
        <section className={styles.approvals} aria-label="Needs you" {...steady.hold}>
          <FreshRows steady={steady} isUrgent />
          {items.map(({ id, approval }) => (
            <ApprovalQuestion key={id} approval={approval} isGone={isGone(id)} />
          ))}
        </section>
      )}
    </>
  );
}
