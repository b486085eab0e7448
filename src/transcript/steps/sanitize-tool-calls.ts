import type {
  AssistantBlock,
  AssistantMessage,
  ToolCallBlock,
  ToolResultMessage,
} from "../../core/messages.ts";
import { cutText } from "../../core/text.ts";
import { CallIds } from "../call-ids.ts";
import type { Api, Change, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive } from "../derive.ts";
import { deepest, isTooDeep } from "../well-formed.ts";

interface Options {
  readonly policy: Pick<TranscriptPolicy, "toolCallIds" | "api">;
  /** Names of the tools that are offered now; left out where they are not known. */
  readonly tools?: readonly string[];
  readonly record: Recorder;
}

/**
 * Step 4: calls that no provider would take are dropped; then every call gets an id in the provider's form, unique in
 * the request, and its result the same. A result belongs to the latest message that has a call of its id; in there to
 * the first such call that has none yet.
 */
export function sanitizeToolCalls(
  messages: readonly TranscriptMessage[],
  { policy, tools, record }: Options,
): StepResult {
  const changes: Change[] = [];
  const offered = tools === undefined ? null : new Set(tools);
  const calls = new CallMatcher(policy.toolCallIds);
  let changed = false;
  const after = messages.map((message) => {
    const tell = (kind: string, note: string) => changes.push(record(kind, note, message));
    const done =
      message.role === "assistant"
        ? withCheckedCalls(message, (call) => problemOf(call, offered, policy.api), calls, tell)
        : message.role === "toolResult"
          ? withIdOfCall(message, calls)
          : message;
    if (done !== message) changed = true;
    return done;
  });
  return { messages: changed ? after : messages, changes };
}

type Tell = (kind: string, note: string) => void;

function withCheckedCalls(
  message: AssistantMessage,
  problemWith: (call: ToolCallBlock) => string | null,
  calls: CallMatcher,
  tell: Tell,
): AssistantMessage {
  if (!message.content.some((block) => block.type === "toolCall")) return message;
  calls.nextMessage();
  let changed = false;
  const content = message.content.flatMap((block): AssistantBlock[] => {
    if (block.type !== "toolCall") return [block];
    const problem = problemWith(block);
    if (problem !== null) {
      changed = true;
      tell("call_removed", `A call is dropped: ${problem}.`);
      if (typeof block.id === "string") calls.drop(block.id);
      return [];
    }
    const id = calls.add(block.id);
    if (id === block.id) return [block];
    changed = true;
    tell("id_rewritten", `The id of a call of ${block.name} became ${id}.`);
    return [{ ...block, id }];
  });
  return changed ? derive(message, { content }) : message;
}

function withIdOfCall(message: ToolResultMessage, calls: CallMatcher): ToolResultMessage {
  const toolCallId = calls.answer(message.toolCallId);
  return toolCallId === message.toolCallId ? message : derive(message, { toolCallId });
}

function problemOf(call: ToolCallBlock, offered: ReadonlySet<string> | null, api: Api): string | null {
  if (typeof call.id !== "string" || call.id === "") return "it has no id";
  if (typeof call.name !== "string" || call.name === "") return "it names no tool";
  if (!mayBeName(call.name, api))
    return `${JSON.stringify(cutText(call.name, 40))} is no name that a tool may have`;
  const args: unknown = call.arguments;
  if (typeof args !== "object" || args === null || Array.isArray(args)) return "its arguments are no object";
  if (isTooDeep(args)) return `its arguments nest more than ${deepest} levels`;
  if (offered !== null && !offered.has(call.name)) return `${call.name} is not offered now`;
  return null;
}

/** Names of what every object has are lost on the way through the provider packages' tables. */
function mayBeName(name: string, api: Api): boolean {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name) || name in {}) return false;
  return api !== "google-generative-ai" || /^[A-Za-z_]/.test(name);
}

/** The calls of one message under one id, in order; `null`: dropped. */
interface Group {
  readonly message: number;
  readonly ids: (string | null)[];
  answered: number;
}

class CallMatcher {
  readonly #ids: CallIds;
  readonly #latest = new Map<string, Group>();
  #message = 0;

  constructor(form: TranscriptPolicy["toolCallIds"]) {
    this.#ids = new CallIds(form);
  }

  nextMessage(): void {
    this.#message++;
  }

  add(original: string): string {
    const id = this.#ids.take(original);
    this.#group(original).ids.push(id);
    return id;
  }

  drop(original: string): void {
    this.#group(original).ids.push(null);
  }

  /** The id of the call that a result answers. A result that answers none gets one that no call has. */
  answer(original: string): string {
    const group = this.#latest.get(original);
    if (group === undefined) return this.#ids.isTaken(original) ? this.#ids.take(original) : original;
    const last = group.ids.length - 1;
    const id = group.ids[Math.min(group.answered++, last)] ?? null;
    return id ?? this.#ids.take(original);
  }

  #group(original: string): Group {
    const known = this.#latest.get(original);
    if (known?.message === this.#message) return known;
    const group = { message: this.#message, ids: [], answered: 0 };
    this.#latest.set(original, group);
    return group;
  }
}
