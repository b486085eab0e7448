import { useConnectionState } from "../connect/gateway.tsx";
import styles from "./offline-bar.module.css";

/** Says that the gateway is away, above what may be out of date. */
export function OfflineBar() {
  if (useConnectionState() === "open") return null;
  return (
    <p className={styles.bar} role="status">
      The connection to the gateway is lost. Trying again; what you see may be out of date.
    </p>
  );
}
