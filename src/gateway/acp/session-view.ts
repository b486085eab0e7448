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
  #isDeaf = false;
  /** How the last answer ended: `stop`, `length`… */
  stopReason: string | null = null;

  constructor(newId: () => string) {
    this.#newId = newId;
    this.#answerId = newId();
  }

  /** An entry that the editor has shown by itself: what was typed there. */
  expect(entryId: string): void {
    this.#own.add(entryId);
  }

  has(entryId: string): boolean {
    return this.#seen.has(entryId);
  }

  /**
   * Events may be missing: until an entry comes by that was not read from the log meanwhile, deltas and tools may be those of
   * entries that were.
   */
  deafen(): void {
    this.#isDeaf = true;
  }

  /** An entry that came by as an event; the stream is not behind the log any more. */
  appended(entry: WireEntry): SessionUpdate[] {
    if (this.#seen.has(entry.id)) return [];
    this.#isDeaf = false;
    return this.entry(entry);
  }

  /** An entry that was read before its event came: its deltas and tools may be on their way. */
  readAhead(entry: WireEntry): SessionUpdate[] {
    if (!this.#seen.has(entry.id)) this.deafen();
    return this.entry(entry);
  }

  /** An entry as it stands in the log. */
  entry(entry: WireEntry): SessionUpdate[] {
    if (this.#seen.has(entry.id)) return [];
    this.#seen.add(entry.id);
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

  delta({ kind, delta }: Delta): SessionUpdate[] {
    if (this.#isDeaf || delta === "") return [];
    this.#streamed[kind] += delta;
    return [this.#chunk(kind, delta, this.#answerId)];
  }

  tool({ phase, toolCallId, toolName, ...about }: Tool): SessionUpdate[] {
    if (this.#isDeaf) return [];
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
