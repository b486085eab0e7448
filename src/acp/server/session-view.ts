import type { ContentBlock, PlanEntry, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { AssistantMessage, Content, Message } from "../../core/messages.ts";
import type { ReceivedEvent } from "../../protocol/methods/calls.ts";
import type { WireEntry } from "../../protocol/session-details.ts";
import { restOf } from "./rest-of.ts";
import { ToolCalls } from "./tool-calls.ts";

type Delta = Extract<ReceivedEvent, { event: "run.delta" }>["payload"];
type Tool = Extract<ReceivedEvent, { event: "run.tool" }>["payload"];

export const begunAnew = "\n\n[The answer is begun anew: what stands above of it does not count.]\n\n";

/**
 * Deltas and tools are heard where they are those of what is not shown yet: not while the stream is behind an entry that was
 * read from the log (`null`: one that was written before anybody listened), nor after a gap until something new is written.
 */
type Hearing = "all" | "after a gap" | { readonly behind: string | null };

/**
 * What an editor has been shown of a session, and what is to be shown next. Entries of the log are what counts, each once;
 * deltas come before the entry that they are pieces of, which then brings no more than is missing.
 */
export class SessionView {
  readonly tools = new ToolCalls();
  readonly #seen = new Set<string>();
  readonly #own = new Set<string>();
  readonly #newId: () => string;
  #streamed = { text: "", thinking: "" };
  /** Of the answer that is being streamed: its entry has no id yet. */
  #answerId: string;
  #hearing: Hearing = { behind: null };
  /** How the last answer to the last input ended: `stop`, `length`…; `null`: there is none. */
  stopReason: string | null = null;

  constructor(newId: () => string) {
    this.#newId = newId;
    this.#answerId = newId();
  }

  /** An entry that the editor has shown by itself: what was typed there. */
  expect(entryId: string): void {
    this.#own.add(entryId);
  }

  /** Events may be missing: pieces of what is being answered among them. */
  deafen(): void {
    this.#hearing = "after a gap";
  }

  /** An entry that came by as an event. One that was not read before says that the stream is not behind the log any more. */
  appended(entry: WireEntry): SessionUpdate[] {
    const isNew = !this.#seen.has(entry.id);
    if (isNew || this.#isBehind(entry.id)) this.#hearing = "all";
    return isNew ? this.#show(entry) : [];
  }

  /** An entry as it stands in the log: what the stream holds of it is still to come. */
  entry(entry: WireEntry): SessionUpdate[] {
    if (this.#seen.has(entry.id)) return [];
    if (this.#hearing !== "after a gap") this.#hearing = { behind: entry.id };
    return this.#show(entry);
  }

  delta({ kind, delta }: Delta): SessionUpdate[] {
    if (!this.isCurrent || delta === "") return [];
    this.#streamed[kind] += delta;
    return [this.#chunk(kind, delta, this.#answerId)];
  }

  tool({ phase, toolCallId, toolName, ...about }: Tool): SessionUpdate[] {
    if (!this.isCurrent) return [];
    return phase === "call"
      ? this.tools.begun(toolCallId, toolName, about.arguments ?? {})
      : this.tools.ended(toolCallId, toolName, about.isError === true, about.content ?? []);
  }

  /** What has been streamed and is not written is not going to be: ACP can take nothing back, so it is said. */
  anew(): SessionUpdate[] {
    const { text, thinking } = this.#streamed;
    const id = this.#answerId;
    this.#forget();
    return text === "" && thinking === "" ? [] : [this.#chunk("text", begunAnew, id)];
  }

  /** Whether the stream has come as far as what was read. */
  get isCurrent(): boolean {
    return this.#hearing === "all";
  }

  #isBehind(entryId: string): boolean {
    return typeof this.#hearing === "object" && this.#hearing.behind === entryId;
  }

  #show(entry: WireEntry): SessionUpdate[] {
    this.#seen.add(entry.id);
    if (entry.type === "message" && entry.message.role === "user") this.stopReason = null;
    if (this.#own.delete(entry.id)) return [];
    switch (entry.type) {
      case "message":
        return this.#message(entry.id, entry.message as Message);
      case "custom_message":
        return entry.display === false ? [] : chunks("user_message_chunk", entry.id, entry.content);
      case "custom":
        return entry.customType === "acp.plan" ? plan(entry.data) : [];
      default:
        return [];
    }
  }

  #message(id: string, message: Message): SessionUpdate[] {
    switch (message.role) {
      case "user":
        return chunks("user_message_chunk", id, message.content);
      case "assistant":
        return this.#answer(id, message);
      case "toolResult":
        return this.tools.ended(
          message.toolCallId,
          message.toolName ?? "tool",
          message.isError === true,
          message.content,
        );
      case "bashExecution":
        return [
          ...this.tools.written(id, "bash", { command: message.command }),
          ...this.tools.ended(id, "bash", (message.exitCode ?? 0) !== 0, [
            { type: "text", text: message.output },
          ]),
        ];
      case "custom":
        return message.display === false ? [] : chunks("user_message_chunk", id, message.content);
      default:
        return [];
    }
  }

  #answer(entryId: string, { content, stopReason }: AssistantMessage): SessionUpdate[] {
    this.stopReason = stopReason ?? null;
    const said = this.#streamed.text !== "" || this.#streamed.thinking !== "";
    const updates = said ? this.#missing(content) : this.#blocks(entryId, content);
    this.#forget();
    for (const block of content)
      if (block.type === "toolCall")
        updates.push(...this.tools.written(block.id, block.name, block.arguments));
    return updates;
  }

  #blocks(entryId: string, content: AssistantMessage["content"]): SessionUpdate[] {
    return content.flatMap((block) => {
      if (block.type === "thinking" && block.thinking !== "")
        return [this.#chunk("thinking", block.thinking, entryId)];
      return block.type === "text" && block.text !== "" ? [this.#chunk("text", block.text, entryId)] : [];
    });
  }

  /** What deltas have not brought; all of it again where they brought something else. */
  #missing(content: AssistantMessage["content"]): SessionUpdate[] {
    const id = this.#answerId;
    const thought = joined(content.map((block) => (block.type === "thinking" ? block.thinking : "")));
    const text = joined(content.map((block) => (block.type === "text" ? block.text : "")));
    const rests = {
      thinking: restOf(thought, this.#streamed.thinking),
      text: restOf(text, this.#streamed.text),
    };
    // Thoughts may be kept from the log; what an answer says may not.
    if (rests.text === null) {
      const again = text === "" ? [] : [this.#chunk("text", text, `${id}-again`)];
      return [this.#chunk("text", begunAnew, id), ...again];
    }
    const rest: SessionUpdate[] = [];
    if (rests.thinking) rest.push(this.#chunk("thinking", rests.thinking, id));
    if (rests.text !== "") rest.push(this.#chunk("text", rests.text, id));
    return rest;
  }

  #chunk(kind: "text" | "thinking", text: string, messageId: string): SessionUpdate {
    const sessionUpdate = kind === "text" ? "agent_message_chunk" : "agent_thought_chunk";
    const id = kind === "text" ? messageId : `${messageId}-thought`;
    return { sessionUpdate, content: { type: "text", text }, messageId: id };
  }

  #forget(): void {
    this.#streamed = { text: "", thinking: "" };
    this.#answerId = this.#newId();
  }
}

function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n");
}

function chunks(sessionUpdate: "user_message_chunk", messageId: string, content: Content): SessionUpdate[] {
  return blocksOf(content).map((each) => ({ sessionUpdate, content: each, messageId }));
}

function blocksOf(content: Content): ContentBlock[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return content.flatMap((block): ContentBlock[] => {
    if (block.type === "text") return block.text === "" ? [] : [{ type: "text", text: block.text }];
    const { data, mimeType } = block;
    return block.type === "image" ? [{ type: "image", data, mimeType }] : [];
  });
}

const priorities = ["high", "medium", "low"] as const;
const statuses = ["pending", "in_progress", "completed"] as const;

/** A plan of another agent, as it came over ACP; what does not look like one is left out. */
function plan(data: unknown): SessionUpdate[] {
  const { entries } = (data ?? {}) as { readonly entries?: unknown };
  if (!Array.isArray(entries)) return [];
  return [{ sessionUpdate: "plan", entries: entries.flatMap(planEntry) }];
}

function planEntry(each: unknown): PlanEntry[] {
  const { content, priority, status } = (each ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof content !== "string") return [];
  return [
    {
      content,
      priority: priorities.find((known) => known === priority) ?? "medium",
      status: statuses.find((known) => known === status) ?? "pending",
    },
  ];
}
