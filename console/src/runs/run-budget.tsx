import { useCall } from "../connect/gateway.tsx";
import { userParam } from "../paths.ts";
import { ErrorLine } from "../ui/notice.tsx";
import { dollars, shortCount } from "../ui/time.ts";
import styles from "./run-budget.module.css";

/** How much of its budget a request and everything it started have used. */
export function RunBudget({ rootId, userId }: { readonly rootId: string; readonly userId?: string }) {
  const { data, error } = useCall(
    "runs.budget",
    { rootId, ...userParam({ userId }) },
    { keepsPrevious: true },
  );
  if (error !== null) return <ErrorLine error={error} />;
  if (data === undefined) return <p className={styles.quiet}>Loading…</p>;
  return (
    <dl className={styles.budget}>
      <Meter name="Runs" figure={data.runs} format={shortCount} />
      <Meter name="Hops" figure={data.hops} format={shortCount} />
      <Meter name="Tokens" figure={data.tokens} format={shortCount} />
      <Meter
        name={data.hasUnpriced === true ? "Known cost" : "Cost"}
        figure={data.costUsd}
        format={dollars}
      />
    </dl>
  );
}

function Meter({
  name,
  figure: { used, allowed },
  format,
}: {
  readonly name: string;
  readonly figure: { readonly used: number; readonly allowed?: number };
  readonly format: (value: number) => string;
}) {
  const share = allowed === undefined || allowed === 0 ? 0 : Math.min(1, used / allowed);
  return (
    <>
      <dt>{name}</dt>
      <dd>
        <span className={styles.track} data-unlimited={allowed === undefined || undefined} aria-hidden>
          <span
            className={styles.used}
            data-full={share >= 1 || undefined}
            style={{ width: `${share * 100}%` }}
          />
        </span>
        <span className={styles.figure}>
          {format(used)} {allowed === undefined ? "no limit" : `of ${format(allowed)}`}
        </span>
      </dd>
    </>
  );
}
