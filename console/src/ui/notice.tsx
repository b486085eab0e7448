import type { ReactNode } from "react";
import { useConnectionState, useMay } from "../connect/gateway.tsx";
import styles from "./notice.module.css";

/** The content of a page that has nothing else to show because it is loading, empty or failed. */
export function Notice({
  text,
  isBusy = false,
  isError = false,
  children,
}: {
  readonly text: string;
  readonly isBusy?: boolean;
  readonly isError?: boolean;
  readonly children?: ReactNode;
}) {
  return (
    <div className={styles.notice} role={isError ? "alert" : "status"} aria-busy={isBusy}>
      <p className={isError ? styles.error : styles.text}>{text}</p>
      {children}
    </div>
  );
}

/** Shown above every page while the gateway is offline, because the displayed data might be outdated. */
export function OfflineBar() {
  if (useConnectionState() === "open") return null;
  return (
    <p className={styles.bar} role="status">
      Gateway offline. Reconnecting…
    </p>
  );
}

/** Shown above every page that has no composer and no actions, to explain why. */
export function ReadOnlyBar() {
  if (useMay("chat.send")) return null;
  return (
    <p className={styles.bar}>
      Read-only: this token cannot send messages, answer approvals or change anything. To do so, sign in with
      a token that has the scope <code>write</code>.
    </p>
  );
}
