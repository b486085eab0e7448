import type { UserMessage } from "../../core/messages.ts";
import { blocksOf } from "../blocks-of.ts";
import type { TranscriptMessage } from "../contract.ts";
import { isSaid, merged } from "../derive.ts";
import type { TurnRule } from "./turn-rule.ts";

/** Stands before what a person said and nobody answered: the run died, and more was said. */
const unansweredMark = "[This message was not answered before the next one came.]";

/**
 * Where a person said something again before an answer, both go into one user turn, the older marked. Nothing that
 * was said is replaced.
 */
export function joinUnanswered(...[messages, tell]: Parameters<TurnRule>): ReturnType<TurnRule> {
  if (!messages.some((message, index) => isPersons(message) && continues(messages, index))) return messages;
  const after: TranscriptMessage[] = [];
  for (let at = 0; at < messages.length; ) {
    const group = userGroup(messages, at);
    const persons = group.filter(isPersons);
    if (persons.length < 2) {
      const passed = group.length === 0 ? [messages[at] as TranscriptMessage] : group;
      for (const message of passed) after.push(message);
      at += passed.length;
      continue;
    }
    const last = persons.at(-1);
    for (const message of persons) if (message !== last) tell("unanswered_joined", joinedNote, message);
    const blocks = group.flatMap((message) =>
      isPersons(message) && message !== last
        ? [{ type: "text" as const, text: unansweredMark }, ...blocksOf(message.content)]
        : blocksOf(message.content),
    );
    after.push(merged(group as [UserMessage, ...UserMessage[]], { content: blocks }));
    at += group.length;
  }
  return after;
}

const joinedNote = "It was not answered before the next message came; both go out as one turn.";

/** What other sessions send may come several at a time, and waits for no answer of its own. */
function isPersons(message: TranscriptMessage): boolean {
  return message.role === "user" && isSaid(message) && (message.provenance?.kind ?? person) === person;
}

const person = "external_user";

function continues(messages: readonly TranscriptMessage[], index: number): boolean {
  for (let at = index + 1; messages[at]?.role === "user"; at++) {
    if (isPersons(messages[at] as TranscriptMessage)) return true;
  }
  return false;
}

function userGroup(messages: readonly TranscriptMessage[], from: number): readonly UserMessage[] {
  const group: UserMessage[] = [];
  for (let at = from; ; at++) {
    const message = messages[at];
    if (message?.role !== "user") return group;
    group.push(message);
  }
}
