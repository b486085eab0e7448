import type {
  SessionUpdate,
  ToolCallContent,
  ToolCallStatus,
  ToolKind,
} from "@agentclientprotocol/sdk/unstable";
import { stringifyJson } from "../../core/json.ts";
import { cutText, escapeToLine } from "../../core/text.ts";

type Arguments = Readonly<Record<string, unknown>>;

export interface ShownCall {
  /** The ID sent to the editor. Models can reuse an ID within a session, but editors expect each ID only once. */
  readonly id: string;
  /** `true` if the call comes from a log entry. A call from an event is not in the log yet. */
  isWritten: boolean;
  hasEnded: boolean;
}

/** A session's tool calls as shown to an editor. Each call starts once and ends once. */
export class ToolCalls {
  /** The latest call for each ID that the model has used. */
  readonly #latest = new Map<string, ShownCall>();
  readonly #uses = new Map<string, number>();

  /** Shows a call from an assistant message in the log. */
  showWritten(callId: string, name: string, args: Arguments): SessionUpdate[] {
    const latest = this.#latest.get(callId);
    if (latest === undefined || latest.isWritten) return this.#start(callId, name, args, "pending", true);
    latest.isWritten = true;
    return [];
  }

  showStarted(callId: string, name: string, args: Arguments): SessionUpdate[] {
    const latest = this.#latest.get(callId);
    if (latest === undefined || latest.hasEnded) return this.#start(callId, name, args, "in_progress", false);
    return [{ sessionUpdate: "tool_call_update", toolCallId: latest.id, status: "in_progress" }];
  }

  showEnded(callId: string, name: string, isError: boolean, content: readonly unknown[]): SessionUpdate[] {
    const start = this.#latest.has(callId) ? [] : this.#start(callId, name, {}, "pending", true);
    const latest = this.#latest.get(callId);
    if (latest === undefined || latest.hasEnded) return [];
    return [...start, this.#end(latest, isError ? "failed" : "completed", content)];
  }

  editorId(callId: string): string {
    return this.#latest.get(callId)?.id ?? callId;
  }

  open(): readonly ShownCall[] {
    return [...this.#latest.values()].filter(({ hasEnded }) => !hasEnded);
  }

  /** Ends calls that no run is working on anymore. */
  abandon(calls = this.open()): SessionUpdate[] {
    return calls.filter(({ hasEnded }) => !hasEnded).map((each) => this.#end(each, "failed", []));
  }

  #start(
    callId: string,
    name: string,
    args: Arguments,
    status: ToolCallStatus,
    isWritten: boolean,
  ): SessionUpdate[] {
    const uses = (this.#uses.get(callId) ?? 0) + 1;
    this.#uses.set(callId, uses);
    const id = uses === 1 ? callId : `${callId}#${uses}`;
    this.#latest.set(callId, { id, isWritten, hasEnded: false });
    const call = { title: toolTitle(name, args), name, kind: toolKind(name), rawInput: args };
    return [{ sessionUpdate: "tool_call", toolCallId: id, status, ...call }];
  }

  #end(call: ShownCall, status: "completed" | "failed", blocks: readonly unknown[]): SessionUpdate {
    call.hasEnded = true;
    const content = toolContent(blocks);
    const update = { toolCallId: call.id, status, ...(content.length > 0 && { content }) };
    return { sessionUpdate: "tool_call_update", ...update };
  }
}

const kinds: Readonly<Record<string, ToolKind>> = {
  sessions_list: "read",
  sessions_history: "read",
  session_status: "read",
  session_list: "read",
  agents_list: "read",
  session_search: "search",
  sessions_send: "other",
  sessions_spawn: "other",
  sessions_yield: "other",
  subagents: "other",
};

/** Matched against each word in a tool's name. An underscore, a dash or a capital letter starts a new word. */
const kindsByWord: readonly (readonly [RegExp, ToolKind])[] = [
  [/^(?:read|get|show|view|list|cat)$/, "read"],
  [/^(?:search|find|grep|glob|query)$/, "search"],
  [/^(?:write|edit|patch|replace|update)$/, "edit"],
  [/^(?:delete|remove|rm)$/, "delete"],
  [/^(?:move|rename|mv)$/, "move"],
  [/^(?:run|exec|execute|bash|shell|terminal|command)$/, "execute"],
  [/^(?:fetch|download|http|web|browse|curl)$/, "fetch"],
  [/^(?:think|plan)$/, "think"],
];

export function toolKind(name: string): ToolKind {
  const known = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (known !== undefined) return known;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  for (const word of words) {
    const found = kindsByWord.find(([pattern]) => pattern.test(word));
    if (found !== undefined) return found[1];
  }
  return "other";
}

export const maxTitleChars = 120;

/** Returns a call's name and arguments on one line. */
export function toolTitle(name: string, args: Arguments): string {
  const title = escapeToLine(Object.keys(args).length === 0 ? name : `${name} ${stringifyJson(args)}`);
  return title.length > maxTitleChars ? `${cutText(title, maxTitleChars)}…` : title;
}

/** Returns the text and images in a result. Blocks of unknown types are omitted. */
export function toolContent(blocks: readonly unknown[]): ToolCallContent[] {
  return blocks.flatMap((block): ToolCallContent[] => {
    const { type, text, data, mimeType } = (block ?? {}) as Arguments;
    if (type === "text" && typeof text === "string" && text !== "")
      return [{ type: "content", content: { type: "text", text } }];
    if (type === "image" && typeof data === "string" && typeof mimeType === "string")
      return [{ type: "content", content: { type: "image", data, mimeType } }];
    return [];
  });
}
