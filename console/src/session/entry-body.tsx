import { Scissors, Wrench } from "lucide-react";
import type { ReactNode } from "react";
import { useMemo } from "react";
import type { TranscriptEntry } from "../live/transcript.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Foldable } from "../ui/foldable.tsx";
import { Markdown } from "../ui/markdown.tsx";
import { isBlank, oneLine } from "../ui/plain-text.ts";
import { previewLine } from "../ui/preview.ts";
import { shortCount, usageText } from "../ui/time.ts";
import { Pictures, StoredText } from "./content-blocks.tsx";
import styles from "./entry-row.module.css";
import type { ContentParts } from "./rows.ts";
import { contentParts, controlWord, interruptedText, quotedText } from "./rows.ts";
import { describeResult, SessionResultLine } from "./session-result.tsx";

type MessageEntry = Extract<TranscriptEntry, { type: "message" }>;
type AssistantMessage = Extract<MessageEntry["message"], { role: "assistant" }>;
type ToolCall = Extract<AssistantMessage["content"][number], { type: "toolCall" }>;

/** The content of an entry. */
export function EntryBody({ entry }: { readonly entry: TranscriptEntry }): ReactNode {
  switch (entry.type) {
    case "message":
      return <MessageBody message={entry.message} />;
    case "compaction":
      return (
        <Foldable
          name="summary"
          title={
            <>
              <Scissors size={13} aria-hidden /> Earlier messages were summarized
              {entry.tokensBefore === undefined ? "" : ` (${shortCount(entry.tokensBefore)} tokens)`}
            </>
          }
        >
          <Markdown text={entry.summary} />
        </Foldable>
      );
    case "branch_summary":
      return (
        <Foldable name="summary" title="Summary of the abandoned branch">
          <Markdown text={entry.summary} />
        </Foldable>
      );
    case "model_change":
      return <p className={styles.change}>Model: {oneLine(`${entry.provider}/${entry.modelId}`)}</p>;
    case "thinking_level_change":
      return <p className={styles.change}>Thinking: {oneLine(entry.thinkingLevel)}</p>;
    case "custom_message":
      return <Prose content={contentParts(entry.content)} />;
    case "custom":
      return <CustomEntry entry={entry} />;
    default:
      return <Unreadable title={oneLine(entry.type)} value={entry} />;
  }
}

/** Content of a kind that the console does not know. */
function Unreadable({ title, value }: { readonly title: string; readonly value: unknown }) {
  return (
    <Foldable name={`unreadable ${title}`} title={<span className={styles.change}>{title}</span>}>
      <Json value={value} />
    </Foldable>
  );
}

/**
 * Text that was streamed before the gateway stopped, or a custom entry that another program stored. The answer that
 * follows does not continue the text.
 */
function CustomEntry({ entry }: { readonly entry: Extract<TranscriptEntry, { type: "custom" }> }) {
  const text = interruptedText(entry);
  if (text === "") return <Unreadable title={`Custom entry: ${oneLine(entry.customType)}`} value={entry} />;
  return (
    <Foldable name="interrupted" title={`Interrupted answer: ${previewLine(text, 100)}`}>
      <div className={styles.thinking}>
        <Markdown text={text} />
      </div>
    </Foldable>
  );
}

function MessageBody({ message }: { readonly message: MessageEntry["message"] }): ReactNode {
  switch (message.role) {
    case "assistant":
      return <AnswerBody message={message} />;
    case "toolResult":
      return (
        <ToolOutput
          toolName={message.toolName ?? ""}
          content={contentParts(message.content)}
          isError={message.isError === true}
        />
      );
    case "bashExecution":
      return (
        <ToolOutput
          content={contentParts(`$ ${message.command}\n${message.output}`)}
          isError={(message.exitCode ?? 0) !== 0}
        />
      );
    default: {
      // Messages with other roles might have no content.
      const content = contentParts(message.content ?? message);
      if (message.role !== "user" || message.provenance?.kind !== "inter_session")
        return <Prose content={content} />;
      return (
        <>
          <SessionMessage text={content.texts.map(({ text }) => text).join("\n")} />
          <Pictures pictures={content.pictures} />
        </>
      );
    }
  }
}

/** Text from a person or a program. An entry contains only the beginning and the end of large text. */
function Prose({ content: { texts, pictures, unreadable } }: { readonly content: ContentParts }) {
  return (
    <>
      {texts.every(({ text }) => isBlank(text)) && pictures.length + unreadable.length === 0 && <Empty />}
      {texts.map((part, index) =>
        part.blob === null ? <Markdown key={index} text={part.text} /> : <StoredText key={index} {...part} />,
      )}
      <Pictures pictures={pictures} />
      {unreadable.length > 0 && <Unreadable title="Content of an unknown kind" value={unreadable} />}
    </>
  );
}

/** Without it, the row of a message without content would have only a header. */
function Empty() {
  return <p className={styles.meta}>(empty)</p>;
}

/**
 * A message between sessions. Shows the text that the other session wrote. The text that Skein added for the model is
 * folded.
 */
function SessionMessage({ text }: { readonly text: string }) {
  const quoted = quotedText(text);
  if (quoted === text) return <Markdown text={text} />;
  return (
    <>
      <Markdown text={quoted} />
      <Foldable name="whole" title={<span className={styles.meta}>What the model received</span>}>
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
        if (block.type === "text") return <AnswerText key={index} text={block.text} />;
        if (block.type === "thinking") {
          return (
            <Foldable key={index} name={`thinking ${index}`} title="Thinking">
              <div className={styles.thinking}>
                <Markdown text={block.thinking} />
              </div>
            </Foldable>
          );
        }
        if (block.type === "toolCall") return <Call key={index} call={block} name={`call ${index}`} />;
        return <Unreadable key={index} title="Content of an unknown kind" value={block} />;
      })}
      {isWithoutText(message) && <Empty />}
      {message.stopReason === "error" && (
        <p className={styles.failed}>{oneLine(message.errorMessage ?? "The model failed.", 400)}</p>
      )}
      {message.stopReason === "aborted" && <p className={styles.meta}>stopped</p>}
      {usage?.totalTokens !== undefined && usage.totalTokens > 0 && (
        <p className={styles.meta}>
          {oneLine(model ?? "")} · {usageText(usage)}
        </p>
      )}
    </>
  );
}

/** Whether an answer's row needs a placeholder. The row of an answer that failed or was stopped already says so. */
function isWithoutText({ content, stopReason }: AssistantMessage): boolean {
  if (stopReason === "error" || stopReason === "aborted") return false;
  return content.every((block) => block.type === "text" && isBlank(block.text));
}

function AnswerText({ text }: { readonly text: string }) {
  const word = controlWord(text);
  if (word === null) return <Markdown text={text} />;
  return (
    <Foldable name="control word" title="(no reply)">
      <CodeBlock text={word} />
    </Foldable>
  );
}

function Call({ call, name }: { readonly call: ToolCall; readonly name: string }) {
  const summary = useMemo(() => oneLine(JSON.stringify(call.arguments), 120), [call]);
  return (
    <Foldable
      name={name}
      title={
        <>
          <Wrench size={13} aria-hidden /> <span className={styles.tool}>{oneLine(call.name, 60)}</span>{" "}
          <span className={styles.arguments}>{summary}</span>
        </>
      }
    >
      <Json value={call.arguments} />
    </Foldable>
  );
}

/** A component, so that a large value is not formatted while it is folded. */
function Json({ value }: { readonly value: unknown }) {
  const text = useMemo(() => JSON.stringify(value, null, 2), [value]);
  return <CodeBlock text={text} language="json" />;
}

/** Short results are expanded. Long ones are not mounted until they are expanded. */
function ToolOutput({
  toolName = "",
  content,
  isError,
}: {
  readonly toolName?: string;
  readonly content: ContentParts;
  readonly isError: boolean;
}) {
  const { texts, pictures } = content;
  const [part] = texts;
  const first = part?.text ?? "";
  const described = useMemo(() => describeResult(toolName, first), [toolName, first]);
  if (part !== undefined && described !== null) return <SessionResultLine result={described} raw={part} />;
  const isShort = texts.length === 1 && first.length <= 2000 && first.split("\n", 9).length <= 8;
  const body = texts.map((part, index) => <StoredText key={index} {...part} />);
  return (
    <div data-error={isError || undefined}>
      {isShort || texts.length === 0 ? (
        body
      ) : (
        <Foldable name="result" title={`${isError ? "Failed" : "Result"}: ${oneLine(first, 100)}`}>
          {body}
        </Foldable>
      )}
      <Pictures pictures={pictures} />
    </div>
  );
}
