import { Wrench } from "lucide-react";
import { memo, useEffect, useRef, useState } from "react";
import type { LiveAnswer } from "../live/live-answers.ts";
import type { TranscriptEntry, TranscriptState } from "../live/transcript.ts";
import { Foldable, FoldScope } from "../ui/foldable.tsx";
import { Markdown } from "../ui/markdown.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { previewLine } from "../ui/preview.ts";
import styles from "./entry-row.module.css";
import { contentText, controlWord, mayBecomeControlWord } from "./rows.ts";
import { useSessionApprovals } from "./session-approvals.tsx";

/** An answer that is being written. Its entry replaces it. */
export const LiveRow = memo(function LiveRow({
  answer,
  agentId,
}: {
  readonly answer: LiveAnswer;
  readonly agentId: string;
}) {
  const { runId, text, thinking, tools } = answer;
  const asked = useSessionApprovals().filter((approval) => approval.runId === runId);
  const isAsking = asked.length > 0;
  // The page shows these calls with their buttons.
  const others = tools.filter((tool) => !asked.some(({ toolCallId }) => toolCallId === tool.toolCallId));
  return (
    <article
      className={styles.row}
      data-kind="agent"
      data-live={runId}
      aria-busy="true"
      aria-label={`${agentId} is answering`}
    >
      <header className={styles.head}>
        <span className={styles.sender}>{agentId}</span>
        {isAsking ? (
          <span className={styles.needsYou}>waiting for your approval</span>
        ) : (
          <span>
            {activityOf(answer)}
            {answer.isStreaming ? "" : " in another process"}
          </span>
        )}
      </header>
      <div className={styles.body}>
        <FoldScope value={`live ${runId}`}>
          {thinking !== "" && text === "" && (
            <Foldable name="thinking" title={`Thinking: ${previewLine(thinking.slice(-160), 100)}`}>
              <div className={styles.thinking}>
                <Markdown text={thinking} isOpen />
              </div>
            </Foldable>
          )}
          {text !== "" && !mayBecomeControlWord(text) && <Markdown text={text} isOpen />}
        </FoldScope>
        {others.map(({ toolCallId, toolName, arguments: given }) => (
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

function activityOf({ state, text, thinking, tools }: LiveAnswer): string {
  if (state === "waiting") return "waiting for another run";
  if (tools.length > 0) return "waiting for tools";
  if (text !== "") return "answering";
  return thinking === "" ? "waiting for the model" : "thinking";
}

/** Announces to screen readers that an answer is complete. Nothing is announced while it is being written. */
export function AnswerAnnouncer({
  state: { entries, live },
  agentId,
}: {
  readonly state: Pick<TranscriptState, "entries" | "live">;
  readonly agentId: string;
}) {
  const [answered, setAnswered] = useState<TranscriptEntry | null>(null);
  const before = useRef({ entryId: "", isLive: false });
  useEffect(() => {
    const answer = entries.findLast((entry) => answerText(entry) !== "");
    const { entryId, isLive } = before.current;
    before.current = { entryId: answer?.id ?? "", isLive: live.length > 0 };
    // Answers on a page of the history were not written while the page was open.
    if (answer !== undefined && answer.id !== entryId && isLive) setAnswered(answer);
  }, [entries, live]);
  return (
    <p role="status" className="visually-hidden">
      {answered !== null && (
        // A new element, because repeated text is not announced again.
        <span key={answered.id}>
          {agentId} answered, {countWords(answerText(answered))}
        </span>
      )}
    </p>
  );
}

/** Returns an answer's text without its tool calls. */
function answerText(entry: TranscriptEntry): string {
  if (entry.type !== "message" || entry.message.role !== "assistant") return "";
  const text = contentText(entry.message.content);
  return controlWord(text) === null ? text : "";
}

function countWords(text: string): string {
  const { length } = text.trim().split(/\s+/);
  return length === 1 ? "1 word" : `${length} words`;
}
