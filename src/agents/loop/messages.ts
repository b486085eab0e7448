import type { Usage } from "../../core/messages.ts";
import type { AnswerDraft, ResponseFacts } from "../ai-sdk/from-response.ts";
import { assistantMessageOf } from "../ai-sdk/from-response.ts";
import { usageOf } from "../ai-sdk/usage.ts";
import type { TurnModel } from "../contract.ts";
import { costOf } from "../models/prices.ts";
import type { PartCollector } from "./collect-parts.ts";

/** What the loop writes of an answer: whole, or as far as it came. */

/** The whole answer, with what it cost where that is known. */
export function wholeAnswer(
  collector: PartCollector,
  facts: ResponseFacts,
  model: TurnModel,
  timestamp: number,
): AnswerDraft {
  const { provider, model: name, policy, price } = model;
  const about = { provider, api: policy.api, model: name, timestamp };
  const cost = price === null ? {} : { cost: costOf(usageOf(facts.usage), price) };
  return assistantMessageOf(collector.content, facts, { ...about, ...cost });
}

/** As it is charged: without a price there is no cost, which is not the same as none. */
export function chargedUsage({ usage }: AnswerDraft, { price }: TurnModel): Usage {
  if (price !== null) return usage;
  const { cost: _, ...tokens } = usage;
  return tokens;
}

export interface Unfinished {
  readonly stopReason: "error" | "aborted";
  readonly errorMessage: string;
  /** How often the model was asked, and whether asking once more may help. */
  readonly attempts: number;
  readonly retryable: boolean;
  /** Left out: all of it is kept. */
  readonly maxCharacters?: number;
}

/** The words of an answer that did not come to its end. Its calls are left out: it owes nothing. */
export function unfinishedAnswer(
  collector: PartCollector,
  ending: Unfinished,
  model: TurnModel,
  timestamp: number,
): AnswerDraft {
  const { stopReason, errorMessage, attempts, retryable, maxCharacters = Number.POSITIVE_INFINITY } = ending;
  const facts = collector.facts ?? { finishReason: { unified: "interrupted" as const, raw: undefined } };
  const whole = wholeAnswer(collector, facts, model, timestamp);
  // As plain words: what a provider said of them holds for the whole answer only.
  const texts = collector.texts.filter((text) => text.trim() !== "");
  const tries = { attempts, retryable };
  return {
    ...whole,
    content: cutTexts(texts, maxCharacters).map((text) => ({ type: "text", text })),
    stopReason,
    errorMessage,
    skein: { ...whole.skein, ...tries },
  };
}

/** The first characters of all texts together, and how many are missing. */
function cutTexts(texts: readonly string[], maxCharacters: number): readonly string[] {
  const kept: string[] = [];
  let room = maxCharacters;
  for (const text of texts) {
    if (room > 0) kept.push(text.length <= room ? text : text.slice(0, room).toWellFormed());
    room -= text.length;
  }
  const last = kept.pop();
  if (last === undefined) return texts;
  return [...kept, room >= 0 ? last : `${last}\n[${-room} more characters were not kept]`];
}

/** Nothing that anybody could read or do. */
export function isEmptyAnswer({ content, stopReason }: AnswerDraft): boolean {
  if (stopReason !== "stop" && stopReason !== "toolUse") return false;
  return content.every((block) => {
    if (block.type === "text") return block.text.trim() === "" && block.skein?.part === undefined;
    return block.type === "thinking";
  });
}
