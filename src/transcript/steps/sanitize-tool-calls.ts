import type {
  AssistantBlock,
  AssistantMessage,
  ToolCallBlock,
  ToolResultMessage,
} from "../../core/messages.ts";
import { shortHash } from "../../core/short-hash.ts";
import { cutText } from "../../core/text.ts";
import type { StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { StepOptions, Tell } from "../derive.ts";
import { derive, mapMessages } from "../derive.ts";
import { isSendableToolName, ToolNames } from "../tool-names.ts";
import { isTooDeep, maxJsonDepth } from "./normalize-context.ts";

/**
 * Step 4: drops calls that can never be valid. Every other call, whether or not its tool is currently offered, gets a
 * name and a unique ID that the provider accepts. Its result gets the same name and ID. A result belongs to the latest
 * message that has a call with its ID and, within that message, to the first such call without a result.
 */
export function sanitizeToolCalls(
  messages: readonly TranscriptMessage[],
  { policy, tools, record }: Pick<StepOptions, "policy" | "tools" | "record">,
): StepResult {
  const names = new ToolNames(tools ?? [], policy.api);
  const calls = new CallMatcher(policy.toolCallIds);
  return mapMessages(messages, record, (message, tell) => {
    if (message.role === "assistant") return checkCalls(message, calls, names, tell);
    return message.role === "toolResult" ? matchResult(message, calls, names) : message;
  });
}

function checkCalls(
  message: AssistantMessage,
  calls: CallMatcher,
  names: ToolNames,
  tell: Tell,
): AssistantMessage {
  if (!message.content.some((block) => block.type === "toolCall")) return message;
  calls.nextMessage();
  let changed = false;
  const content = message.content.flatMap((block): AssistantBlock[] => {
    if (block.type !== "toolCall") return [block];
    const problem = findCallProblem(block);
    if (problem !== null) {
      changed = true;
      tell("call_removed", `A call is dropped: ${problem}.`);
      if (typeof block.id === "string") calls.drop(block.id);
      return [];
    }
    const id = calls.add(block.id);
    const name = names.sent(block.name);
    if (id === block.id && name === block.name) return [block];
    changed = true;
    if (id !== block.id) tell("id_rewritten", `The ID of a call to ${block.name} was changed to ${id}.`);
    if (name !== block.name) tell("name_rewritten", `The call to ${block.name} is sent as ${name}.`);
    return [{ ...block, id, name }];
  });
  return changed ? derive(message, { content }) : message;
}

function matchResult(message: ToolResultMessage, calls: CallMatcher, names: ToolNames): ToolResultMessage {
  const toolCallId = calls.answer(message.toolCallId);
  const toolName = typeof message.toolName === "string" ? names.sent(message.toolName) : message.toolName;
  if (toolCallId === message.toolCallId && toolName === message.toolName) return message;
  return derive(message, { toolCallId, ...(toolName === undefined ? {} : { toolName }) });
}

function findCallProblem(call: ToolCallBlock): string | null {
  if (typeof call.id !== "string" || call.id === "") return "it has no ID";
  if (typeof call.name !== "string" || call.name === "") return "it names no tool";
  if (!isSendableToolName(call.name))
    return `${JSON.stringify(cutText(call.name, 40))} is not a valid tool name`;
  const args: unknown = call.arguments;
  if (typeof args !== "object" || args === null || Array.isArray(args))
    return "its arguments are not an object";
  if (isTooDeep(args)) return `its arguments are nested more than ${maxJsonDepth} levels deep`;
  return null;
}

/** The calls in one message that share an ID, in order. A dropped call is `null`. */
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

  /** Returns the ID of the call that a result answers. An orphaned result gets an ID that no call has. */
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

type Form = TranscriptPolicy["toolCallIds"];

const longest = { strict: 40, strict9: 9, kept: 64 } as const;

/**
 * Gives each call a unique ID that the provider accepts. A valid unused ID is kept. A new ID depends only on the
 * original and on earlier calls, so it stays the same as the conversation grows.
 */
class CallIds {
  readonly #form: Form;
  readonly #taken = new Set<string>();
  /**
   * How many IDs have been generated for each original. With this count, a thousand equal IDs take a thousand attempts
   * instead of a million.
   */
  readonly #turns = new Map<string, number>();

  constructor(form: Form) {
    this.#form = form;
  }

  isTaken(id: string): boolean {
    return this.#taken.has(id);
  }

  take(original: string): string {
    const id = this.#free(original);
    this.#taken.add(id);
    return id;
  }

  #free(original: string): string {
    const fitting = fitId(original, this.#form);
    if (fitting !== null && !this.#taken.has(fitting)) return fitting;
    for (let turn = this.#turns.get(original) ?? 0; ; turn++) {
      const id = hashId(original, turn, this.#form);
      if (this.#taken.has(id)) continue;
      this.#turns.set(original, turn + 1);
      return id;
    }
  }
}

/** Returns the ID unchanged or in its closest valid form. Returns `null` if only a hash is possible. */
function fitId(id: string, form: Form): string | null {
  if (form === "strict9") return /^[A-Za-z0-9]{9}$/.test(id) ? id : null;
  if (form === "strict") {
    const clean = id.replace(/[^A-Za-z0-9_-]/g, "");
    return clean !== "" && clean.length <= longest.strict ? clean : null;
  }
  // pi appends the Responses API's item ID to the call's own ID.
  const own = id.includes("|") ? id.slice(0, id.indexOf("|")) : id;
  return own !== "" && own.length <= longest.kept && own.isWellFormed() ? own : null;
}

function hashId(original: string, turn: number, form: Form): string {
  const digest = shortHash(`${turn} ${original}`);
  if (form !== "strict9") return `call_${digest}`;
  return BigInt(`0x${digest}`).toString(36).padStart(9, "0").slice(-9);
}
