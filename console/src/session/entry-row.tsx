import { ArrowDownLeft, Eye, GitBranch, Scissors, Wrench } from "lucide-react";
import type { ReactNode } from "react";
import { memo } from "react";
import { Link } from "wouter";
import { useSessionRow } from "../frame.tsx";
import { rowName } from "../live/desk.ts";
import type { TranscriptEntry } from "../live/transcript.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Foldable } from "../ui/foldable.tsx";
import { Highlight } from "../ui/highlight-text.tsx";
import { Markdown } from "../ui/markdown.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { threadOf } from "../ui/thread.ts";
import { fullTime, shortCount, shortTime } from "../ui/time.ts";
import styles from "./entry-row.module.css";
import type { BranchQuery, Fork } from "./forks.ts";
import { contentText, quotedText, rowKind, rowText, senderName } from "./rows.ts";
import type { SessionPlace } from "./session-place.ts";
import { sessionPath, useSessionPlace } from "./session-place.ts";

type MessageEntry = Extract<TranscriptEntry, { type: "message" }>;
type AssistantMessage = Extract<MessageEntry["message"], { role: "assistant" }>;
type ToolCall = Extract<AssistantMessage["content"][number], { type: "toolCall" }>;

interface EntryRowProps {
  readonly entry: TranscriptEntry;
  readonly agentId: string;
  readonly highlight: string;
  readonly isTarget: boolean;
  readonly fork?: Fork | undefined;
}

/** One entry. Roles differ by shape and place: a rule at the left, plain text, an inset, a hatched band. */
export const EntryRow = memo(function EntryRow({ entry, agentId, highlight, isTarget, fork }: EntryRowProps) {
  const kind = rowKind(entry);
  const at = Date.parse(entry.timestamp);
  const source = useSessionRow(sourceOf(entry, useSessionPlace()));
  return (
    <article
      className={styles.row}
      data-kind={kind}
      {...(source === null ? {} : { "data-thread": threadOf(source.sessionId) })}
      data-entry-id={entry.id}
      data-target={isTarget || undefined}
      aria-label={`${senderName(entry, agentId) || kind}, ${fullTime(at)}`}
    >
      <header className={styles.head}>
        <Sender entry={entry} agentId={agentId} />
        <time dateTime={entry.timestamp} title={fullTime(at)}>
          {shortTime(at)}
        </time>
        {fork !== undefined && <ForkSteps fork={fork} />}
        <Actions entry={entry} />
      </header>
      <div className={styles.body}>
        {highlight === "" ? <Body entry={entry} /> : <Highlight text={rowText(entry)} words={highlight} />}
      </div>
    </article>
  );
});

function Sender({ entry, agentId }: { readonly entry: TranscriptEntry; readonly agentId: string }) {
  const source = sourceOf(entry, useSessionPlace());
  const row = useSessionRow(source);
  const name = senderName(entry, agentId);
  if (source === null) return <span className={styles.sender}>{oneLine(name, 80)}</span>;
  return (
    <Link className={styles.sender} href={sessionPath(source)}>
      <ArrowDownLeft size={13} aria-hidden />
      {row === null ? oneLine(name, 80) : rowName(row)}
    </Link>
  );
}

/** The session that a message came from; `null` if it came from elsewhere. */
function sourceOf(entry: TranscriptEntry, { userId }: SessionPlace): SessionPlace | null {
  if (entry.type !== "message" || !("provenance" in entry.message)) return null;
  const { provenance } = entry.message;
  if (provenance?.kind !== "inter_session" || provenance.sourceSessionKey === undefined) return null;
  return { key: provenance.sourceSessionKey, ...(userId === undefined ? {} : { userId }) };
}

/** `‹2/3›`: which of the branches is shown, with the way to its neighbors. The leaf stays where it is. */
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
          title="What it saw"
          aria-label="What it saw"
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

function Body({ entry }: { readonly entry: TranscriptEntry }): ReactNode {
  switch (entry.type) {
    case "message":
      return <MessageBody message={entry.message} />;
    case "compaction":
      return (
        <Foldable
          title={
            <>
              <Scissors size={13} aria-hidden /> Earlier messages were summarized
              {entry.tokensBefore === undefined ? "" : `, ${shortCount(entry.tokensBefore)} tokens before`}
            </>
          }
        >
          <Markdown text={entry.summary} />
        </Foldable>
      );
    case "branch_summary":
      return (
        <Foldable title="Summary of the branch that was left">
          <Markdown text={entry.summary} />
        </Foldable>
      );
    case "model_change":
      return <p className={styles.change}>Model: {oneLine(`${entry.provider}/${entry.modelId}`)}</p>;
    case "thinking_level_change":
      return <p className={styles.change}>Thinking: {oneLine(entry.thinkingLevel)}</p>;
    case "custom_message":
      return <Markdown text={contentText(entry.content)} />;
    default:
      return <p className={styles.change}>{oneLine(entry.type)}</p>;
  }
}

function MessageBody({ message }: { readonly message: MessageEntry["message"] }): ReactNode {
  switch (message.role) {
    case "assistant":
      return <AnswerBody message={message} />;
    case "toolResult":
      return (
        <ToolOutput
          text={contentText(message.content)}
          isError={message.isError === true}
          images={imagesIn(message.content)}
        />
      );
    case "bashExecution":
      return (
        <ToolOutput
          text={`$ ${message.command}\n${message.output}`}
          isError={(message.exitCode ?? 0) !== 0}
          images={[]}
        />
      );
    default:
      if (message.role === "user" && message.provenance?.kind === "inter_session")
        return <SessionMessage text={contentText(message.content)} />;
      return (
        <>
          <Markdown text={contentText(message.content)} />
          <Images images={imagesIn(message.content)} />
        </>
      );
  }
}

/** A message between sessions: the text that the other session wrote. What Skein wrote around it for the model is folded. */
function SessionMessage({ text }: { readonly text: string }) {
  const quoted = quotedText(text);
  if (quoted === null) return <Markdown text={text} />;
  return (
    <>
      <Markdown text={quoted} />
      <Foldable title={<span className={styles.meta}>{oneLine(text, 100)}</span>}>
        <CodeBlock text={text} />
      </Foldable>
    </>
  );
}

function AnswerBody({ message }: { readonly message: AssistantMessage }) {
  const { usage, model } = message;
  return (
    <>
      {message.content.map((block, index) => {
        if (block.type === "text") return <Markdown key={index} text={block.text} />;
        if (block.type === "thinking") {
          return (
            <Foldable key={index} title="Thinking">
              <div className={styles.thinking}>
                <Markdown text={block.thinking} />
              </div>
            </Foldable>
          );
        }
        return block.type === "toolCall" ? <Call key={index} call={block} /> : null;
      })}
      {message.stopReason === "error" && (
        <p className={styles.failed}>{oneLine(message.errorMessage ?? "The model failed.", 400)}</p>
      )}
      {usage?.totalTokens !== undefined && usage.totalTokens > 0 && (
        <p className={styles.meta}>
          {model} · {shortCount(usage.input ?? 0)} in · {shortCount(usage.output ?? 0)} out
        </p>
      )}
    </>
  );
}

function Call({ call }: { readonly call: ToolCall }) {
  const text = JSON.stringify(call.arguments, null, 2);
  return (
    <Foldable
      title={
        <>
          <Wrench size={13} aria-hidden /> <span className={styles.tool}>{oneLine(call.name, 60)}</span>{" "}
          <span className={styles.arguments}>{oneLine(JSON.stringify(call.arguments), 120)}</span>
        </>
      }
    >
      <CodeBlock text={text} language="json" />
    </Foldable>
  );
}

/** Short results are open; long ones are not mounted until they are opened. */
function ToolOutput({
  text,
  isError,
  images,
}: {
  readonly text: string;
  readonly isError: boolean;
  readonly images: readonly Image[];
}) {
  const lines = text.split("\n", 9).length;
  const title = isError ? "Failed" : "Result";
  const body = <CodeBlock text={text} language={looksLikeJson(text) ? "json" : ""} />;
  return (
    <div data-error={isError || undefined}>
      {lines <= 8 && text.length <= 2000 ? (
        body
      ) : (
        <Foldable title={`${title}: ${oneLine(text, 100)}`}>{body}</Foldable>
      )}
      <Images images={images} />
    </div>
  );
}

function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

interface Image {
  readonly data: string;
  readonly mimeType: string;
}

function imagesIn(content: unknown): readonly Image[] {
  if (!Array.isArray(content)) return [];
  return content.filter(
    (block: { type?: string; mimeType?: string; data?: string }) =>
      block.type === "image" &&
      /^image\/(?:png|jpeg|gif|webp)$/.test(block.mimeType ?? "") &&
      (block.data ?? "") !== "",
  );
}

function Images({ images }: { readonly images: readonly Image[] }) {
  if (images.length === 0) return null;
  return (
    <div className={styles.images}>
      {images.map(({ data, mimeType }, index) => (
        <img key={index} src={`data:${mimeType};base64,${data}`} alt={`Attachment ${index + 1}`} />
      ))}
    </div>
  );
}
