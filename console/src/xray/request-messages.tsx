import { Link } from "wouter";
import type { SessionPlace } from "../paths.ts";
import { sessionPath } from "../paths.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Foldable } from "../ui/foldable.tsx";
import { oneLine } from "../ui/plain-text.ts";
import styles from "./request-messages.module.css";
import type { Context } from "./xray-page.tsx";

type Message = Context["request"]["messages"][number] & {
  readonly content?: unknown;
  readonly toolName?: string;
};

/** The request as sent: the system prompt, the tools, then each message with its tokens and the entry it comes from. */
export function RequestMessages({
  context,
  place,
}: {
  readonly context: Context;
  readonly place: SessionPlace;
}) {
  const { request, parts, changes } = context;
  const partAt = new Map(parts.map((part) => [part.messageIndex, part]));
  const changeCounts = new Map<number, number>();
  for (const { messageIndex } of changes) {
    if (messageIndex !== undefined) changeCounts.set(messageIndex, (changeCounts.get(messageIndex) ?? 0) + 1);
  }
  const maxTokens = Math.max(1, ...parts.map(({ tokens }) => tokens));
  return (
    <ol className={styles.list} aria-label="The request">
      {request.system !== undefined && (
        <li className={styles.message} data-role="system">
          <span className={styles.role}>system</span>
          <Foldable title={oneLine(request.system, 200)}>
            <div className={styles.text}>
              <CodeBlock text={request.system} />
            </div>
          </Foldable>
        </li>
      )}
      {(request.tools ?? []).length > 0 && (
        <li className={styles.message} data-role="system">
          <span className={styles.role}>tools</span>
          <Foldable title={(request.tools ?? []).map(({ name }) => oneLine(name, 40)).join(", ")}>
            <CodeBlock text={JSON.stringify(request.tools, null, 2)} language="json" />
          </Foldable>
        </li>
      )}
      {request.messages.map((message: Message, index) => {
        const part = partAt.get(index);
        const count = changeCounts.get(index) ?? 0;
        const text = messageText(message);
        return (
          <li key={index} className={styles.message} data-message={index} data-role={message.role}>
            <span className={styles.role}>
              {part?.entryIds[0] === undefined ? (
                message.role
              ) : (
                <Link href={sessionPath(place, "", { entry: part.entryIds[0] })}>{message.role}</Link>
              )}
            </span>
            <div>
              {text.length <= 280 && !text.includes("\n") ? (
                <span dir="auto">{text}</span>
              ) : (
                <Foldable title={oneLine(text, 200)}>
                  <div className={styles.text}>
                    <CodeBlock text={text} />
                  </div>
                </Foldable>
              )}
              {count > 0 && (
                <span className={styles.changed}>{count === 1 ? "1 change" : `${count} changes`}</span>
              )}
            </div>
            <span className={styles.tokens}>
              {part === undefined ? "" : part.tokens.toLocaleString("en")}
              <span
                className={styles.weight}
                style={{ width: `${((part?.tokens ?? 0) / maxTokens) * 48}px` }}
                aria-hidden
              />
            </span>
          </li>
        );
      })}
    </ol>
  );
}

function messageText({ content, toolName }: Message): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return JSON.stringify(content ?? null);
  const text = content.map(blockText).join("\n");
  return toolName === undefined ? text : `${toolName}: ${text}`;
}

function blockText(block: {
  type?: string;
  text?: string;
  thinking?: string;
  name?: string;
  arguments?: unknown;
  mimeType?: string;
}): string {
  if (block.type === "text") return block.text ?? "";
  if (block.type === "thinking") return `(thinking) ${block.thinking ?? ""}`;
  if (block.type === "toolCall") return `${block.name ?? "tool"}(${JSON.stringify(block.arguments ?? {})})`;
  return block.type === "image" ? `(image, ${block.mimeType ?? "unknown type"})` : JSON.stringify(block);
}
