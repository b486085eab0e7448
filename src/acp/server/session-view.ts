import type { ContentBlock, PlanEntry, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { AssistantMessage, Content, Message } from "../../core/messages.ts";
import type { ReceivedEvent } from "../../protocol/calls.ts";
import type { WireEntry } from "../../protocol/session-details.ts";
import { ToolCalls } from "./tool-calls.ts";

type Delta = Pick<Extract<ReceivedEvent, { event: "run.delta" }>["payload"], "kind" | "delta">;
type ToolEvent = Extract<ReceivedEvent, { event: "run.tool" }>["payload"];

export const restartText = "\n\n[The answer starts over. Ignore the part above.]\n\n";

/**
 * The position of the event stream relative to the log. Deltas and tool events are shown only while the stream is
 * current. After entries have been read from the log, the stream is behind until the event for the last entry arrives.
 * `behind` is the ID of that entry, or `null` if the entry predates the stream. After a gap, the position is unknown
 * until a new entry arrives.
 */
type StreamPosition = "current" | "unknown" | { readonly behind: string | null };

/**
 * Tracks which parts of a session an editor has been shown and decides what to show next. Every log entry is shown
 * once. Deltas come before the entry that they belong to. The entry then adds only what is missing.
 */
export class SessionView {
  readonly tools = new ToolCalls();
  readonly #shown = new Set<string>();
  readonly #typedHere = new Set<string>();
  readonly #newId: () => string;
  #streamed = { text: "", thinking: "" };
  /** The message ID of the answer being streamed, whose entry has no ID yet. */
  #answerId: string;
  #position: StreamPosition = { behind: null };
  /** How the last answer to the last input ended, or `null` if there is none. */
  stopReason: string | null = null;

  constructor(newId: () => string) {
    this.#newId = newId;
    this.#answerId = newId();
  }

  /** Skips the entry of a prompt, because the editor already shows it. */
  expectTyped(entryId: string): void {
    this.#typedHere.add(entryId);
  }

  /** Call this when events have been lost. */
  markGap(): void {
    this.#position = "unknown";
  }

  /** Shows an entry from an event. */
  showEvent(entry: WireEntry): SessionUpdate[] {
    const isNew = !this.#shown.has(entry.id);
    const isAwaited = typeof this.#position === "object" && this.#position.behind === entry.id;
    if (isNew || isAwaited) this.#position = "current";
    return isNew ? this.#show(entry) : [];
  }

  /** Shows an entry that was read from the log. Its event has not arrived yet. */
  showEntry(entry: WireEntry): SessionUpdate[] {
    if (this.#shown.has(entry.id)) return [];
    if (this.#position !== "unknown") this.#position = { behind: entry.id };
    return this.#show(entry);
  }

  showDelta({ kind, delta }: Delta): SessionUpdate[] {
    if (!this.isCurrent || delta === "") return [];
    this.#streamed[kind] += delta;
    return [chunk(kind, delta, this.#answerId)];
  }

  showTool({ phase, toolCallId, toolName, ...event }: ToolEvent): SessionUpdate[] {
    if (!this.isCurrent) return [];
    return phase === "call"
      ? this.tools.showStarted(toolCallId, toolName, event.arguments ?? {})
      : this.tools.showEnded(toolCallId, toolName, event.isError === true, event.content ?? []);
  }

  /**
   * Call this when an answer is restarted. ACP cannot withdraw streamed text, so a note is added after it.
   */
  restartAnswer(): SessionUpdate[] {
    const id = this.#answerId;
    const hasStreamed = this.#hasStreamed;
    this.#resetStreamed();
    return hasStreamed ? [chunk("text", restartText, id)] : [];
  }

  /** Whether the event stream has caught up with what was read from the log. */
  get isCurrent(): boolean {
    return this.#position === "current";
  }

  get #hasStreamed(): boolean {
    return this.#streamed.text !== "" || this.#streamed.thinking !== "";
  }

  #show(entry: WireEntry): SessionUpdate[] {
    this.#shown.add(entry.id);
    if (entry.type === "message" && entry.message.role === "user") this.stopReason = null;
    if (this.#typedHere.delete(entry.id)) return [];
    switch (entry.type) {
      case "message":
        return this.#showMessage(entry.id, entry.message as Message);
      case "custom_message":
        return entry.display === false ? [] : userChunks(entry.id, entry.content);
      case "custom":
        return entry.customType === "acp.plan" ? planUpdate(entry.data) : [];
      default:
        return [];
    }
  }

  #showMessage(id: string, message: Message): SessionUpdate[] {
    switch (message.role) {
      case "user":
        return userChunks(id, message.content);
      case "assistant":
        return this.#showAnswer(id, message);
      case "toolResult": {
        const { toolCallId, toolName = "tool", isError, content } = message;
        return this.tools.showEnded(toolCallId, toolName, isError === true, content);
      }
      case "bashExecution": {
        const { command, exitCode, output } = message;
        const result = [{ type: "text", text: output }];
        return [
          ...this.tools.showWritten(id, "bash", { command }),
          ...this.tools.showEnded(id, "bash", (exitCode ?? 0) !== 0, result),
        ];
      }
      case "custom":
        return message.display === false ? [] : userChunks(id, message.content);
      default:
        return [];
    }
  }

  #showAnswer(entryId: string, { content, stopReason }: AssistantMessage): SessionUpdate[] {
    this.stopReason = stopReason ?? null;
    const updates = this.#hasStreamed ? this.#missingChunks(content) : answerChunks(entryId, content);
    this.#resetStreamed();
    for (const block of content)
      if (block.type === "toolCall")
        updates.push(...this.tools.showWritten(block.id, block.name, block.arguments));
    return updates;
  }

  /** Returns the part of the answer that the deltas did not include, or the whole answer if they differ from it. */
  #missingChunks(content: AssistantMessage["content"]): SessionUpdate[] {
    const id = this.#answerId;
    const thinking = joinLines(content.map((block) => (block.type === "thinking" ? block.thinking : "")));
    const text = joinLines(content.map((block) => (block.type === "text" ? block.text : "")));
    const missingThinking = missingEnd(thinking, this.#streamed.thinking);
    const missingText = missingEnd(text, this.#streamed.text);
    // The log might lack thinking that was streamed, but never lacks part of the text.
    if (missingText === null) {
      const again = text === "" ? [] : [chunk("text", text, `${id}-again`)];
      return [chunk("text", restartText, id), ...again];
    }
    return [
      ...(missingThinking ? [chunk("thinking", missingThinking, id)] : []),
      ...(missingText === "" ? [] : [chunk("text", missingText, id)]),
    ];
  }

  #resetStreamed(): void {
    this.#streamed = { text: "", thinking: "" };
    this.#answerId = this.#newId();
  }
}

/**
 * Returns the rest of a text whose start has been shown, or `null` if the shown text is not its start. Ignores
 * whitespace, because the blocks of an answer are joined differently when they are streamed.
 */
export function missingEnd(text: string, shown: string): string | null {
  let at = 0;
  for (const character of shown) {
    if (/\s/.test(character)) continue;
    while (at < text.length && /\s/.test(text[at] as string)) at += 1;
    if (!text.startsWith(character, at)) return null;
    at += character.length;
  }
  const rest = text.slice(at);
  return rest.trim() === "" ? "" : /\s$/.test(shown) ? rest.trimStart() : rest;
}

function chunk(kind: "text" | "thinking", text: string, id: string): SessionUpdate {
  const content = { type: "text" as const, text };
  return kind === "text"
    ? { sessionUpdate: "agent_message_chunk", content, messageId: id }
    : { sessionUpdate: "agent_thought_chunk", content, messageId: `${id}-thought` };
}

function answerChunks(id: string, content: AssistantMessage["content"]): SessionUpdate[] {
  return content.flatMap((block) => {
    if (block.type === "thinking" && block.thinking !== "") return [chunk("thinking", block.thinking, id)];
    return block.type === "text" && block.text !== "" ? [chunk("text", block.text, id)] : [];
  });
}

function joinLines(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n");
}

function userChunks(messageId: string, content: Content): SessionUpdate[] {
  const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  return blocks.flatMap((block): SessionUpdate[] => {
    const shown: ContentBlock | null =
      block.type === "text" && block.text !== ""
        ? { type: "text", text: block.text }
        : block.type === "image"
          ? { type: "image", data: block.data, mimeType: block.mimeType }
          : null;
    return shown === null ? [] : [{ sessionUpdate: "user_message_chunk", content: shown, messageId }];
  });
}

const priorities = ["high", "medium", "low"] as const;
const statuses = ["pending", "in_progress", "completed"] as const;

/** Returns another agent's plan as received over ACP. Malformed entries are omitted. */
function planUpdate(data: unknown): SessionUpdate[] {
  const { entries } = (data ?? {}) as { readonly entries?: unknown };
  if (!Array.isArray(entries)) return [];
  const planEntries = entries.flatMap((each): PlanEntry[] => {
    const { content, priority, status } = (each ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof content !== "string") return [];
    return [
      {
        content,
        priority: priorities.find((known) => known === priority) ?? "medium",
        status: statuses.find((known) => known === status) ?? "pending",
      },
    ];
  });
  return [{ sessionUpdate: "plan", entries: planEntries }];
}
