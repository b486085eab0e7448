import { useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { CallError } from "skein/client";
import { errorText, useConnectionState, useMay } from "../connect/gateway.tsx";
import buttons from "./button.module.css";
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

/** Errors caused by the address or the token, which a retry cannot fix. */
const finalCodes: ReadonlySet<string> = new Set(["invalid_request", "forbidden", "not_found", "ambiguous"]);

/** Reads again every result that the page lacks. */
function RetryButton({ error, onRetry }: ErrorProps) {
  const queries = useQueryClient();
  if (error instanceof CallError && finalCodes.has(error.code)) return null;
  const retry = () => {
    onRetry?.();
    void queries.refetchQueries({ type: "active", predicate: ({ state }) => state.status === "error" });
  };
  return (
    <button type="button" className={buttons.button} onClick={retry}>
      Retry
    </button>
  );
}

interface ErrorProps {
  readonly error: Error | string;
  /** Reads results that are not cached by `useCall`. */
  readonly onRetry?: () => void;
}

/** The content of a page that could not be read. */
export function ErrorNotice(props: ErrorProps) {
  return (
    <Notice text={errorText(props.error)} isError>
      <RetryButton {...props} />
    </Notice>
  );
}

/** Replaces a part of a page that could not be read. */
export function ErrorLine({ intro = "", ...props }: ErrorProps & { readonly intro?: string }) {
  return (
    <p className={styles.line} role="alert">
      {intro}
      {errorText(props.error)} <RetryButton {...props} />
    </p>
  );
}

/** Shown over every page while the gateway is offline, because the displayed data might be outdated. */
export function OfflineBar() {
  if (useConnectionState() === "open") return null;
  return (
    <p className={styles.offline} role="status">
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
