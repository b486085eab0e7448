import { isDeepStrictEqual } from "node:util";
import type { AssistantBlock, ToolCallBlock } from "../../core/messages.ts";
import type { AnswerDraft } from "../ai-sdk/from-response.ts";
import type { Tool } from "../contract.ts";

/** Calls whose arguments the transcript keeps in another form than they are made with (`Tool.persisted`). */

/** The answer as it is written; the very same where no tool wants it otherwise. */
export function asKept(answer: AnswerDraft, tools: readonly Tool[]): AnswerDraft {
  const content = answer.content.map((block) => keptBlock(block, tools));
  return content.every((block, at) => block === answer.content[at]) ? answer : { ...answer, content };
}

/**
 * Calls as they were written, to be made with what was asked for: an argument that the transcript keeps in another form is
 * as it was again, unless somebody has changed it on its way into the transcript.
 */
export function madeCalls(
  written: readonly ToolCallBlock[],
  kept: AnswerDraft,
  asked: AnswerDraft,
): readonly ToolCallBlock[] {
  if (kept === asked) return written;
  return written.map((call) => {
    const at = kept.content.findIndex((block) => block.type === "toolCall" && block.id === call.id);
    const [before, after] = [asked.content[at], kept.content[at]];
    if (before?.type !== "toolCall" || after?.type !== "toolCall" || before === after) return call;
    return { ...call, arguments: withAsked(call.arguments, after.arguments, before.arguments) };
  });
}

type Arguments = ToolCallBlock["arguments"];

function withAsked(written: Arguments, kept: Arguments, asked: Arguments): Arguments {
  const fields = Object.entries(written).map(([name, value]) =>
    Object.hasOwn(asked, name) && isDeepStrictEqual(value, kept[name]) ? [name, asked[name]] : [name, value],
  );
  return Object.fromEntries(fields) as Arguments;
}

function keptBlock(block: AssistantBlock, tools: readonly Tool[]): AssistantBlock {
  if (block.type !== "toolCall") return block;
  const tool = tools.find(({ name }) => name === block.name);
  const args = tool?.persisted?.(block.arguments);
  return args === undefined || args === block.arguments ? block : { ...block, arguments: { ...args } };
}
