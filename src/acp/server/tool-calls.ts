import type { SessionUpdate, ToolCallStatus } from "@agentclientprotocol/sdk/unstable";
import { toolContent, toolKind, toolTitle } from "./tool-shapes.ts";

type Arguments = Readonly<Record<string, unknown>>;

export interface Shown {
  /** The editor's id: models use one twice in a session, editors know each once. */
  readonly id: string;
  /** By an entry; what only an event told of is yet to be written. */
  isWritten: boolean;
  isOver: boolean;
}

/** The calls of tools in a session, as an editor knows them: each begins once and ends once. */
export class ToolCalls {
  /** By the model's own id, the last of that id. */
  readonly #last = new Map<string, Shown>();
  readonly #uses = new Map<string, number>();

  /** A call in an answer that is written. */
  written(callId: string, name: string, args: Arguments): SessionUpdate[] {
    const last = this.#last.get(callId);
    if (last === undefined || last.isWritten) return this.#begin(callId, name, args, "pending", true);
    last.isWritten = true;
    return [];
  }

  /** A tool begins to work. */
  begun(callId: string, name: string, args: Arguments): SessionUpdate[] {
    const last = this.#last.get(callId);
    if (last === undefined || last.isOver) return this.#begin(callId, name, args, "in_progress", false);
    return [{ sessionUpdate: "tool_call_update", toolCallId: last.id, status: "in_progress" }];
  }

  ended(callId: string, name: string, isError: boolean, content: readonly unknown[]): SessionUpdate[] {
    const known = this.#last.get(callId);
    const begin = known === undefined ? this.#begin(callId, name, {}, "pending", true) : [];
    const last = this.#last.get(callId);
    if (last === undefined || last.isOver) return [];
    return [...begin, this.#end(last, isError ? "failed" : "completed", content)];
  }

  /** The editor's id of a call. */
  idOf(callId: string): string {
    return this.#last.get(callId)?.id ?? callId;
  }

  /** Those that have not ended. */
  open(): readonly Shown[] {
    return [...this.#last.values()].filter(({ isOver }) => !isOver);
  }

  /** Nobody works on these any more. */
  abandon(calls = this.open()): SessionUpdate[] {
    return calls.filter(({ isOver }) => !isOver).map((each) => this.#end(each, "failed", []));
  }

  #begin(
    callId: string,
    name: string,
    args: Arguments,
    status: ToolCallStatus,
    isWritten: boolean,
  ): SessionUpdate[] {
    const uses = (this.#uses.get(callId) ?? 0) + 1;
    this.#uses.set(callId, uses);
    const id = uses === 1 ? callId : `${callId}#${uses}`;
    this.#last.set(callId, { id, isWritten, isOver: false });
    const shape = { title: toolTitle(name, args), name, kind: toolKind(name), rawInput: args };
    return [{ sessionUpdate: "tool_call", toolCallId: id, status, ...shape }];
  }

  #end(call: Shown, status: "completed" | "failed", content: readonly unknown[]): SessionUpdate {
    call.isOver = true;
    const shown = toolContent(content);
    const about = { toolCallId: call.id, status };
    return {
      sessionUpdate: "tool_call_update",
      ...about,
      ...(shown.length === 0 ? {} : { content: shown }),
    };
  }
}
