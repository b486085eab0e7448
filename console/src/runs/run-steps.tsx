import { Eye } from "lucide-react";
import type { Result } from "skein/client";
import { Link } from "wouter";
import { useCall } from "../connect/gateway.tsx";
import { placeOf, sessionPath, userParam } from "../paths.ts";
import { ErrorLine } from "../ui/notice.tsx";
import { duration, usageText } from "../ui/time.ts";
import { useNow } from "../ui/use-now.ts";
import type { RunRow } from "./run-state.tsx";
import { isOpen } from "./run-state.tsx";
import styles from "./run-steps.module.css";

type Step = Result<"runs.steps">["steps"][number];

/** A run's model requests and tool calls, each at its position on the run's timeline. */
export function RunSteps({ run }: { readonly run: RunRow }) {
  const { data, error } = useCall(
    "runs.steps",
    { runId: run.runId, ...userParam(run) },
    { keepsPrevious: true },
  );
  const now = useNow(isOpen(run));
  if (error !== null) return <ErrorLine error={error} />;
  if (data === undefined) return <p className={styles.quiet}>Loading…</p>;
  if (data.steps.length === 0)
    return <p className={styles.quiet}>{isOpen(run) ? "No model requests yet." : "No model requests."}</p>;
  const from = run.startedAt ?? run.createdAt;
  const to = Math.max(run.endedAt ?? now, from + 1);
  return (
    <ol className={styles.steps}>
      {data.steps.map((step) => (
        <StepRows key={step.step} run={run} step={step} from={from} to={to} now={now} />
      ))}
      {data.truncated === true && <li className={styles.quiet}>Later steps are not listed.</li>}
    </ol>
  );
}

interface StepRowsProps {
  readonly run: RunRow;
  readonly step: Step;
  readonly from: number;
  readonly to: number;
  readonly now: number;
}

function StepRows({ run, step, from, to, now }: StepRowsProps) {
  const place = placeOf(run);
  const { askedAt, answeredAt, entryId, error } = step;
  const answer = step.error === undefined ? (step.model ?? "model") : "failed";
  return (
    <li>
      <div className={styles.row}>
        <span className={styles.number}>{step.step}</span>
        <span className={styles.name}>
          {entryId === undefined ? (
            answer
          ) : (
            <Link href={sessionPath(place, "", { entry: entryId })}>{answer}</Link>
          )}
        </span>
        <Span
          start={askedAt}
          end={answeredAt}
          from={from}
          to={to}
          now={now}
          kind={error === undefined ? "model" : "failed"}
        />
        <span className={styles.figure}>
          {askedAt === undefined ? "" : duration((answeredAt ?? now) - askedAt)}
        </span>
        <span className={styles.figure}>{step.usage === undefined ? "" : usageText(step.usage)}</span>
        {entryId !== undefined && (
          <Link
            href={sessionPath(place, "context", { entry: entryId })}
            className={styles.saw}
            aria-label={`What the model saw in step ${step.step}`}
            title="What the model saw"
          >
            <Eye size={13} aria-hidden />
          </Link>
        )}
      </div>
      {error !== undefined && <p className={styles.error}>{error}</p>}
      {step.tools.map((tool) => (
        <div key={tool.toolCallId} className={styles.row} data-tool>
          <span />
          <span className={styles.name}>
            {tool.entryId === undefined ? (
              tool.toolName
            ) : (
              <Link href={sessionPath(place, "", { entry: tool.entryId })}>{tool.toolName}</Link>
            )}
          </span>
          <Span
            start={answeredAt}
            end={tool.endedAt}
            from={from}
            to={to}
            now={now}
            kind={tool.isError === true ? "failed" : "tool"}
          />
          <span className={styles.figure}>
            {answeredAt === undefined ? "" : duration((tool.endedAt ?? now) - answeredAt)}
          </span>
          <span className={styles.figure}>{tool.isError === true ? "failed" : ""}</span>
        </div>
      ))}
    </li>
  );
}

function Span({
  start,
  end,
  from,
  to,
  now,
  kind,
}: {
  readonly start: number | undefined;
  readonly end: number | undefined;
  readonly from: number;
  readonly to: number;
  readonly now: number;
  readonly kind: "model" | "tool" | "failed";
}) {
  if (start === undefined) return <span className={styles.track} />;
  const share = (at: number) => (100 * Math.min(Math.max(at - from, 0), to - from)) / (to - from);
  const left = share(start);
  const width = share(end ?? now) - left;
  return (
    <span className={styles.track} aria-hidden>
      <span
        className={styles.span}
        data-kind={kind}
        style={{ left: `${left}%`, width: `max(2px, ${width}%)` }}
      />
    </span>
  );
}
