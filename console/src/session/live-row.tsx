import { Wrench } from "lucide-react";
import { memo } from "react";
import type { LiveAnswer } from "../live/transcript.ts";
import { Foldable } from "../ui/foldable.tsx";
import { Markdown } from "../ui/markdown.tsx";
import { oneLine } from "../ui/plain-text.ts";
import styles from "./entry-row.module.css";

/** An answer while it is written. Its entry replaces it. */
export const LiveRow = memo(function LiveRow({
  answer,
  agentId,
}: {
  readonly answer: LiveAnswer;
  readonly agentId: string;
}) {
  const { text, thinking, tools } = answer;
  return (
    <article
      className={styles.row}
      data-kind="agent"
      data-live={answer.runId}
      aria-busy="true"
      aria-label={`${agentId} is answering`}
    >
      <header className={styles.head}>
        <span className={styles.sender}>{agentId}</span>
        <span>
          {text === "" && tools.length === 0
            ? thinking === ""
              ? "waiting for the model"
              : "thinking"
            : "answering"}
        </span>
      </header>
      <div className={styles.body}>
        {thinking !== "" && text === "" && (
          <Foldable title={`Thinking: ${oneLine(thinking.slice(-160), 100)}`}>
            <div className={styles.thinking}>
              <Markdown text={thinking} isOpen />
            </div>
          </Foldable>
        )}
        {text !== "" && <Markdown text={text} isOpen />}
        {tools.map(({ toolCallId, toolName, arguments: given }) => (
          <p key={toolCallId} className={styles.change}>
            <Wrench size={13} aria-hidden /> <span className={styles.tool}>{oneLine(toolName, 60)}</span>{" "}
            <span className={styles.arguments}>
              {given === undefined ? "" : oneLine(JSON.stringify(given), 120)}
            </span>
          </p>
        ))}
      </div>
    </article>
  );
});
