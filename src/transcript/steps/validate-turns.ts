import type { AssistantBlock, AssistantMessage, UserMessage } from "../../core/messages.ts";
import type { Change, StepResult, TranscriptMessage, TranscriptPolicy } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { derive, insertMessage, isSaid, mergeMessages, toBlocks } from "../derive.ts";

/** The rules for each kind of provider, in order. */
const rules: Readonly<Record<TranscriptPolicy["turns"], readonly TurnRule[]>> = {
  anthropic: [
    dropEmptyTurns,
    stripOpenCalls,
    joinUnanswered,
    mergeTurns("user"),
    mergeTurns("assistant"),
    endWithUser,
  ],
  gemini: [dropEmptyTurns, stripOpenCalls, joinUnanswered, mergeTurns("assistant"), endWithUser],
  mistral: [dropEmptyTurns, stripOpenCalls, joinUnanswered, endWithUser, separateToolAndUser],
  any: [dropEmptyTurns, stripOpenCalls, joinUnanswered, endWithUser],
};

/**
 * Puts turns in the order that the provider requires. A request is never empty and never ends with an assistant turn.
 */
export function validateTurns(
  messages: readonly TranscriptMessage[],
  { policy, record }: Pick<StepOptions, "policy" | "record">,
): StepResult {
  const changes: Change[] = [];
  const tell = (kind: string, note: string, message?: TranscriptMessage) =>
    changes.push(record(kind, note, message));
  const after = rules[policy.turns].reduce((turns, rule) => rule(turns, tell), messages);
  return { messages: after, changes };
}

const emptyText = "(There is no message.)";
const goOnText = "Continue.";

function endWithUser(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  const last = messages.at(-1);
  if (last === undefined) {
    tell("user_turn_added", "There is nothing to send, so a short user turn is added.");
    return [insertMessage({ role: "user", content: emptyText })];
  }
  if (last.role !== "assistant") return messages;
  tell(
    "user_turn_added",
    "A request must not end with an assistant turn, so a short user turn is added.",
    last,
  );
  return [...messages, insertMessage({ role: "user", content: goOnText })];
}

const openingText = "(The conversation continues from here.)";

/** Step 8: drops empty turns, and inserts a short user turn if a provider requires one at the start. */
export function fixFirstTurn(
  messages: readonly TranscriptMessage[],
  { policy, record }: Pick<StepOptions, "policy" | "record">,
): StepResult {
  const changes: Change[] = [];
  const turns = dropEmptyTurns(messages, (...told) => changes.push(record(...told)));
  const first = turns[0];
  if (policy.firstTurn !== "user" || first === undefined || first.role === "user")
    return { messages: turns, changes };
  const opening = insertMessage({ role: "user" as const, content: openingText });
  const note = `The first turn must be a user turn, so a short one is added before the ${first.role} message.`;
  changes.push(record("first_turn_added", note, first));
  return { messages: [opening, ...turns], changes };
}

function dropEmptyTurns(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  if (!messages.some((message) => message.content.length === 0)) return messages;
  return messages.filter((message) => {
    if (message.content.length > 0) return true;
    tell("turn_dropped", `A turn with the role ${message.role} has no content left.`, message);
    return false;
  });
}

const omittedText = "[tool calls omitted]";

/** Drops calls without a result that pairing left in place. A turn that becomes empty gets an explanatory note. */
function stripOpenCalls(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  let changed = false;
  const after = messages.map((message, index) => {
    if (message.role !== "assistant" || isAnswered(message, messages, index)) return message;
    const answered = findAnsweredIds(messages, index);
    const content = message.content.filter((block) => block.type !== "toolCall" || answered.has(block.id));
    if (content.length === message.content.length) return message;
    changed = true;
    tell("call_removed", "Calls without a result are dropped.", message);
    const left: AssistantMessage["content"] =
      content.length > 0 ? content : [{ type: "text", text: omittedText }];
    return derive(message, { content: left });
  });
  return changed ? after : messages;
}

/** Whether the results follow in the order of the calls. */
function isAnswered(
  message: AssistantMessage,
  messages: readonly TranscriptMessage[],
  index: number,
): boolean {
  let at = index;
  for (const block of message.content) {
    if (block.type !== "toolCall") continue;
    const result = messages[++at];
    if (result?.role !== "toolResult" || result.toolCallId !== block.id) return false;
  }
  return true;
}

function findAnsweredIds(messages: readonly TranscriptMessage[], index: number): ReadonlySet<string> {
  const ids = new Set<string>();
  for (let at = index + 1; ; at++) {
    const message = messages[at];
    if (message?.role !== "toolResult") return ids;
    ids.add(message.toolCallId);
  }
}

/** Marks a prompt that received no answer because its run crashed. */
const unansweredMark = "[This message was not answered before the next one came.]";

/** Joins a person's consecutive prompts into one user turn and marks the older ones as unanswered. */
function joinUnanswered(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  if (!messages.some((message, index) => isFromPerson(message) && hasLaterPrompt(messages, index)))
    return messages;
  const after: TranscriptMessage[] = [];
  for (let at = 0; at < messages.length; ) {
    const group = readUserGroup(messages, at);
    const persons = group.filter(isFromPerson);
    if (persons.length < 2) {
      const passed = group.length === 0 ? [messages[at] as TranscriptMessage] : group;
      for (const message of passed) after.push(message);
      at += passed.length;
      continue;
    }
    const last = persons.at(-1);
    for (const message of persons) if (message !== last) tell("unanswered_joined", joinedNote, message);
    const blocks = group.flatMap((message) =>
      isFromPerson(message) && message !== last
        ? [{ type: "text" as const, text: unansweredMark }, ...toBlocks(message.content)]
        : toBlocks(message.content),
    );
    after.push(mergeMessages(group as [UserMessage, ...UserMessage[]], { content: blocks }));
    at += group.length;
  }
  return after;
}

const joinedNote = "It was not answered before the next message arrived, so both are sent as one turn.";

/** Messages from other sessions can arrive together and do not all expect an answer. */
function isFromPerson(message: TranscriptMessage): boolean {
  return message.role === "user" && isSaid(message) && (message.provenance?.kind ?? person) === person;
}

const person = "external_user";

function hasLaterPrompt(messages: readonly TranscriptMessage[], index: number): boolean {
  for (let at = index + 1; messages[at]?.role === "user"; at++) {
    if (isFromPerson(messages[at] as TranscriptMessage)) return true;
  }
  return false;
}

function readUserGroup(messages: readonly TranscriptMessage[], from: number): readonly UserMessage[] {
  const group: UserMessage[] = [];
  for (let at = from; ; at++) {
    const message = messages[at];
    if (message?.role !== "user") return group;
    group.push(message);
  }
}

/** Merges consecutive turns with the same role. */
function mergeTurns(role: "user" | "assistant"): TurnRule {
  return (messages, tell) => {
    if (!messages.some((message, index) => message.role === role && messages[index + 1]?.role === role))
      return messages;
    const after: TranscriptMessage[] = [];
    for (let at = 0; at < messages.length; ) {
      const group = readGroup(messages, at, role);
      at += Math.max(1, group.length);
      if (group.length < 2) {
        after.push(messages[at - 1] as TranscriptMessage);
        continue;
      }
      tell(
        "turns_merged",
        `Consecutive turns with the role ${role} (${group.length}) are merged into one.`,
        group.at(-1),
      );
      after.push(
        role === "user"
          ? mergeUsers(group as [UserMessage, ...UserMessage[]])
          : mergeAssistants(group as [AssistantMessage, ...AssistantMessage[]]),
      );
    }
    return after;
  };
}

function readGroup(
  messages: readonly TranscriptMessage[],
  from: number,
  role: string,
): readonly TranscriptMessage[] {
  let end = from;
  while (messages[end]?.role === role) end++;
  return messages.slice(from, end);
}

function mergeUsers(group: readonly [UserMessage, ...UserMessage[]]): UserMessage {
  return mergeMessages(group, { content: group.flatMap((message) => [...toBlocks(message.content)]) });
}

/**
 * Merges consecutive answers into one. Thinking from other models has already been removed, so all signed blocks belong
 * to one model, and the merged message names that model.
 */
function mergeAssistants(group: readonly [AssistantMessage, ...AssistantMessage[]]): AssistantMessage {
  const content = group.flatMap((message) => message.content);
  const signer = group.findLast((message) => message.content.some(isSigned)) ?? group.at(-1);
  const { provider, model, api } = signer ?? group[0];
  const origin = Object.fromEntries(
    Object.entries({ provider, model, api }).filter(([, value]) => value !== undefined),
  );
  return mergeMessages(group, { content, ...origin });
}

function isSigned(block: AssistantBlock): boolean {
  if (block.type === "thinking" || block.skein?.providerMetadata !== undefined) return true;
  return block.type === "text" ? block.textSignature !== undefined : block.thoughtSignature !== undefined;
}

const readText = "I have read the results.";

/** Mistral rejects a user turn directly after tool results, so a short assistant turn is inserted between them. */
function separateToolAndUser(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  const follows = (index: number) =>
    messages[index]?.role === "user" && messages[index - 1]?.role === "toolResult";
  if (!messages.some((_, index) => follows(index))) return messages;
  return messages.flatMap((message, index) => {
    if (!follows(index)) return [message];
    tell(
      "assistant_turn_added",
      "A short assistant turn is added between tool results and a user turn.",
      message,
    );
    const between = { role: "assistant" as const, content: [{ type: "text" as const, text: readText }] };
    return [insertMessage(between), message];
  });
}

/** Returns the same array if there is nothing to do. */
type TurnRule = (
  messages: readonly TranscriptMessage[],
  tell: (kind: string, note: string, message?: TranscriptMessage) => void,
) => readonly TranscriptMessage[];
