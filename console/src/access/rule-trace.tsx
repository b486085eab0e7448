import { ArrowRight } from "lucide-react";
import type { Result } from "skein/client";
import { Link } from "wouter";
import { useCall } from "../connect/gateway.tsx";
import { useSessionNames } from "../live/session-names.ts";
import { sessionPath, userParam } from "../paths.ts";
import { ErrorNotice, Notice } from "../ui/notice.tsx";
import { SidePanel } from "../ui/side-panel.tsx";
import { threadOf } from "../ui/theme.ts";
import { actionWords } from "./access-matrix.tsx";
import styles from "./rule-trace.module.css";

type Explanation = Result<"access.explain">["explanations"][number];

interface RuleTraceProps {
  readonly from: string;
  readonly to: string;
  readonly userId: string | null;
  /** The action whose rules are expanded. Defaults to the first. */
  readonly action: string | null;
  readonly onClose: () => void;
}

/** Every rule that was applied for each action, in order. The last one decided. */
export function RuleTrace({ from, to, userId, action, onClose }: RuleTraceProps) {
  const user = userParam({ userId });
  const names = useSessionNames();
  const { data, error } = useCall("access.explain", { asker: from, target: to, ...user });
  const link = (key: string) => (
    <Link
      href={sessionPath({ key, ...user })}
      className={styles.session}
      data-thread={threadOf(names.idOf({ key, ...user }))}
    >
      {names.nameOf({ key, ...user })}
    </Link>
  );
  return (
    <SidePanel title="Rules" onClose={onClose}>
      <p className={styles.pair}>
        {link(data?.asker.key ?? from)} <ArrowRight size={14} aria-label="asks for" /> {link(to)}
      </p>
      {error !== null ? (
        <ErrorNotice error={error} />
      ) : data === undefined ? (
        <Notice text="Applying the rules…" isBusy />
      ) : (
        data.explanations.map((each, index) => (
          <ActionTrace
            key={each.action}
            explanation={each}
            isOpen={action === null ? index === 0 : each.action === action}
          />
        ))
      )}
    </SidePanel>
  );
}

function ActionTrace({
  explanation,
  isOpen,
}: {
  readonly explanation: Explanation;
  readonly isOpen: boolean;
}) {
  const { action, decision, steps } = explanation;
  return (
    <details className={styles.action} open={isOpen}>
      <summary>
        <b>{actionWords[action]}</b>
        <span data-allowed={decision.allowed}>
          {!decision.allowed && <i aria-hidden>×</i>} {decision.allowed ? "allowed" : "refused"}
        </span>
        <span className={styles.decider}>by {steps.at(-1)?.rule ?? "no rule"}</span>
      </summary>
      <ol className={styles.steps}>
        {steps.map(({ rule, outcome, reason }, index) => (
          <li key={index} data-outcome={outcome}>
            <svg width={12} height={12} aria-hidden>
              <Mark outcome={outcome} />
            </svg>
            <code>{rule}</code>
            <span className={styles.reason}>
              <span className="visually-hidden">{outcome}: </span>
              {reason}
            </span>
          </li>
        ))}
      </ol>
    </details>
  );
}

/** A rule that does not decide is a small dot. A rule that decides is a full disc or a cross. */
function Mark({ outcome }: { readonly outcome: Explanation["steps"][number]["outcome"] }) {
  if (outcome === "pass") return <circle cx={6} cy={6} r={2.5} className={styles.pass} />;
  if (outcome === "allow") return <circle cx={6} cy={6} r={5} className={styles.allow} />;
  return <path d="M2 2 L10 10 M10 2 L2 10" className={styles.refuse} />;
}
