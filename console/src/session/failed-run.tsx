import { useCall, useMay, useOffline } from "../connect/gateway.tsx";
import { useRefresh } from "../connect/refresh.ts";
import { userParam } from "../paths.ts";
import { useRunActions } from "../runs/run-actions.ts";
import { canRetry, endedStates, isFailed, openStates } from "../runs/run-state.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { useSessionPlace } from "../ui/session-head.tsx";
import styles from "./session-page.module.css";

/** A message that joined a running turn is not a separate run. */
const states = [...openStates, ...endedStates].filter((state) => state !== "merged");

/** Shows why the session's last run failed, at the end of its transcript, with a way to run it again. */
export function FailedRun({ sessionKey }: { readonly sessionKey: string }) {
  const place = useSessionPlace();
  const { retry, isBusy, error } = useRunActions();
  const mayRetry = useMay("runs.retry");
  const offline = useOffline();
  const params = { sessionKey, states, limit: 1, ...userParam(place) };
  const { data } = useCall("runs.list", params, { staleMs: 0, keepsPrevious: true });
  useRefresh(
    ["runs.list"],
    ({ event, payload }) =>
      (event === "run.queued" || event === "run.ended") &&
      "sessionKey" in payload &&
      payload.sessionKey === sessionKey,
  );
  const run = data?.runs[0];
  if (run === undefined || !isFailed(run) || !canRetry(run)) return null;
  // The sentences after the first give advice for programs.
  const [reason = ""] = (run.error?.message ?? "The reason was not recorded.").split(/(?<=[.!?])\s/);
  return (
    <p className={styles.bar} data-failed role="status">
      {run.state === "timeout" ? "The last run timed out: " : "The last run failed: "}
      {oneLine(reason, 400)}
      {mayRetry && (
        <button type="button" disabled={isBusy} onClick={() => void retry([run])} {...offline}>
          Retry
        </button>
      )}
      {error !== null && <span role="alert"> {error}</span>}
    </p>
  );
}
