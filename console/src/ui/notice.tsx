import type { ReactNode } from "react";
import { useConnectionState } from "../connect/gateway.tsx";
import styles from "./notice.module.css";

/** The middle of a page that has nothing else to show: loading, empty, failed. */
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

/** Stands above every page: what it shows may be out of date. */
export function OfflineBar() {
  if (useConnectionState() === "open") return null;
  return (
    <p className={styles.offline} role="status">
      Gateway offline. Reconnecting…
    </p>
  );
}
