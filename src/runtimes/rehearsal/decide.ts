import type { JSONObject, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { Asked } from "./acts.ts";
import { afterResults, notedText } from "./answers.ts";
import { announceStep, arrived, isArrival, isChild, lateReply, pingPong } from "./between-sessions.ts";
import type { Conversation } from "./conversation.ts";
import { conversationOf } from "./conversation.ts";
import { fitSchema } from "./fit-schema.ts";
import { task, unknown } from "./own-acts.ts";
import { withoutPoliteness } from "./patterns.ts";
import type { Reply } from "./reply.ts";
import { calls, says } from "./reply.ts";
import { isSummaryPrompt, rehearsedSummary } from "./summary.ts";
import { understood } from "./understood.ts";
import type { Language } from "./words.ts";
import { languageOf } from "./words.ts";

/** What the rehearsal model says to a request. May throw as a provider does, where it is asked to. */
export function decide(options: LanguageModelV4CallOptions, isFirstTime: () => boolean): Reply {
  const conversation = conversationOf(options);
  if (isSummaryPrompt(conversation.request)) {
    return says(rehearsedSummary(conversation.request, options.maxOutputTokens));
  }
  const reply = inPlainWords(conversation, options, isFirstTime);
  return options.responseFormat?.type === "json" && reply.calls.length === 0
    ? { ...reply, text: JSON.stringify(fitted(options.responseFormat.schema, reply.text)) }
    : reply;
}

function fitted(schema: unknown, answer: string) {
  return schema === undefined ? { answer } : fitSchema(schema);
}

function inPlainWords(
  conversation: Conversation,
  options: LanguageModelV4CallOptions,
  isFirstTime: () => boolean,
): Reply {
  if (conversation.results.length > 0) return afterResults(conversation, languageFor(conversation));
  const step =
    lateReply(conversation, languageFor(conversation)) ??
    announceStep(conversation) ??
    pingPong(conversation);
  if (step !== null) return step;
  const named = understand(conversation, isFirstTime);
  if (isArrival(conversation, named !== null)) return arrived(conversation, languageFor(conversation));
  return named?.() ?? forced(conversation, options) ?? otherwise(conversation);
}

/** The language that the request is known by, else that of its words; of a report, that of whom it is for. */
function languageFor(conversation: Conversation): Language {
  const said = [
    ...conversation.before,
    { role: "user", text: conversation.request, source: conversation.source },
  ];
  const asked = said.findLast(({ role, source }) => role === "user" && source === null);
  const text = asked?.text ?? conversation.request;
  return known(text)?.language ?? languageOf(text);
}

interface Known extends Pick<Asked, "language" | "rest" | "groups"> {
  readonly act: (asked: Asked) => Reply | null;
}

/** The rows of the list that a text could be meant by, the first first. */
function* knownAs(request: string): Generator<Known> {
  const text = withoutPoliteness(request);
  for (const { begins, act } of understood) {
    for (const language of ["en", "zh"] as const) {
      const found = begins[language].exec(text);
      if (found === null) continue;
      yield { act, language, rest: text.slice(found[0].length), groups: found.groups ?? {} };
    }
  }
}

function known(request: string): Known | null {
  return knownAs(request).next().value ?? null;
}

/** What to do about a request; not done yet, for it may be to fail. `null`: it is not understood. */
function understand(conversation: Conversation, isFirstTime: () => boolean): (() => Reply | null) | null {
  const meant = [...knownAs(conversation.request)];
  if (meant.length === 0) return null;
  return () => {
    for (const { act, ...rest } of meant) {
      const reply = act({ ...rest, conversation, isFirstTime });
      if (reply !== null) return reply;
    }
    return null;
  };
}

/** A tool that has to be called is called, with what it requires. */
function forced({ tools }: Conversation, { toolChoice }: LanguageModelV4CallOptions): Reply | null {
  if (toolChoice?.type !== "tool" && toolChoice?.type !== "required") return null;
  const tool = toolChoice.type === "tool" ? tools.find(({ name }) => name === toolChoice.toolName) : tools[0];
  if (tool === undefined) return null;
  return calls({ name: tool.name, arguments: (fitSchema(tool.inputSchema) ?? {}) as JSONObject });
}

function otherwise(conversation: Conversation): Reply {
  const { request, source } = conversation;
  const asked: Asked = {
    language: languageOf(request),
    rest: request,
    groups: {},
    conversation,
    isFirstTime: () => false,
  };
  if (isChild(conversation)) return task(asked) ?? unknown(asked);
  return source === null ? unknown(asked) : says(notedText(request, asked.language));
}
