import { ArrowDownLeft, Eye, GitBranch } from "lucide-react";
import { memo } from "react";
import { Link } from "wouter";
import { useSessionRow } from "../frame.tsx";
import { rowName } from "../live/session-row.ts";
import type { TranscriptEntry } from "../live/transcript.ts";
import type { SessionPlace } from "../paths.ts";
import { sessionPath } from "../paths.ts";
import { FoldScope } from "../ui/foldable.tsx";
import { Highlight } from "../ui/highlight-text.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { useSessionPlace } from "../ui/session-head.tsx";
import { threadOf } from "../ui/theme.ts";
import { entryTime, fullTime } from "../ui/time.ts";
import { EntryBody } from "./entry-body.tsx";
import styles from "./entry-row.module.css";
import type { BranchQuery, Fork } from "./forks.ts";
import { rowKind, rowText, senderName, sourceOf } from "./rows.ts";

interface EntryRowProps {
  readonly entry: TranscriptEntry;
  readonly agentId: string;
  readonly highlight: string;
  readonly isTarget: boolean;
  readonly fork?: Fork | undefined;
}

/** One entry. Roles differ in shape and position: a rule on the left, plain text, an inset, or a hatched band. */
export const EntryRow = memo(function EntryRow({ entry, agentId, highlight, isTarget, fork }: EntryRowProps) {
  const kind = rowKind(entry);
  const at = Date.parse(entry.timestamp);
  const place = useSessionPlace();
  const source = useSessionRow(sourceOfEntry(entry, place));
  return (
    <article
      className={styles.row}
      data-kind={kind}
      {...(source === null ? {} : { "data-thread": threadOf(source.sessionId) })}
      data-entry-id={entry.id}
      data-target={isTarget || undefined}
      aria-label={`${oneLine(senderName(entry, agentId, place.userId), 80) || kind}, ${fullTime(at)}`}
    >
      <header className={styles.head}>
        <Sender entry={entry} agentId={agentId} />
        <time dateTime={entry.timestamp} title={fullTime(at)}>
          {entryTime(at)}
        </time>
        {fork !== undefined && <ForkSteps fork={fork} />}
        <Actions entry={entry} />
      </header>
      <div className={styles.body}>
        <FoldScope value={`${place.userId ?? ""} ${place.key} ${entry.id}`}>
          {highlight === "" ? (
            <EntryBody entry={entry} />
          ) : (
            <Highlight text={rowText(entry)} words={highlight} />
          )}
        </FoldScope>
      </div>
    </article>
  );
});

function Sender({ entry, agentId }: { readonly entry: TranscriptEntry; readonly agentId: string }) {
  const place = useSessionPlace();
  const source = sourceOfEntry(entry, place);
  const row = useSessionRow(source);
  const name = senderName(entry, agentId, place.userId);
  if (name === "") return null;
  if (source === null) return <span className={styles.sender}>{oneLine(name, 80)}</span>;
  return (
    <Link className={styles.sender} href={sessionPath(source)}>
      <ArrowDownLeft size={13} aria-hidden />
      <bdi>{rowName(row ?? source)}</bdi>
    </Link>
  );
}

function sourceOfEntry(entry: TranscriptEntry, place: SessionPlace): SessionPlace | null {
  if (entry.type !== "message" || !("provenance" in entry.message)) return null;
  return sourceOf(entry.message.provenance, place);
}

/** `‹2/3›` shows which branch is displayed and links to its neighbors. The leaf does not move. */
function ForkSteps({ fork: { position, count, previous, next } }: { readonly fork: Fork }) {
  const place = useSessionPlace();
  const step = (query: BranchQuery | null, sign: string, name: string) =>
    query === null ? (
      <span aria-hidden>{sign}</span>
    ) : (
      <Link href={sessionPath(place, "", { ...query })} aria-label={name} title={name}>
        {sign}
      </Link>
    );
  return (
    <span className={styles.fork}>
      {step(previous, "‹", "Previous branch")}
      <span>{`${position}/${count}`}</span>
      {step(next, "›", "Next branch")}
    </span>
  );
}

function Actions({ entry }: { readonly entry: TranscriptEntry }) {
  const place = useSessionPlace();
  const isAnswer = entry.type === "message" && entry.message.role === "assistant";
  return (
    <span className={styles.actions}>
      {isAnswer && (
        <Link
          href={sessionPath(place, "context", { entry: entry.id })}
          title="What the model saw"
          aria-label="What the model saw"
        >
          <Eye size={14} />
        </Link>
      )}
      <Link
        href={sessionPath(place, "tree", { entry: entry.id })}
        title="Branches"
        aria-label="Branches from here"
      >
        <GitBranch size={14} />
      </Link>
    </span>
  );
}
