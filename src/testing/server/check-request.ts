import { SkeinError } from "../../core/errors.ts";
import { anthropicErrorBody } from "../twins/anthropic-messages.ts";
import { anthropicAnswer, anthropicEvents } from "../twins/anthropic-reply.ts";
import { checkMessages } from "../twins/anthropic-request.ts";
import type { Refusal, TwinApi, TwinLimits, TwinRequest, WireFormat } from "../twins/contract.ts";
import { googleErrorBody, parsePath } from "../twins/google-contents.ts";
import { googleAnswer, googleEvents } from "../twins/google-reply.ts";
import { checkGenerate } from "../twins/google-request.ts";
import { mistralAnswer, mistralEvents } from "../twins/mistral-reply.ts";
import { checkMistral } from "../twins/mistral-request.ts";
import { mistralErrorBody } from "../twins/mistral-schema.ts";
import { openaiErrorBody } from "../twins/openai.ts";
import { chatAnswer, chatEvents } from "../twins/openai-chat-reply.ts";
import { checkChat } from "../twins/openai-chat-request.ts";
import { responsesAnswer, responsesEvents } from "../twins/openai-responses-reply.ts";
import { checkResponses } from "../twins/openai-responses-request.ts";
import { catchRefusal, fieldsOf, pathOf } from "../twins/shared.ts";

type Check = (request: TwinRequest, limits: TwinLimits) => void;

function isPostTo(path: string): WireFormat["serves"] {
  return (request) => request.method === "POST" && pathOf(request.path) === path;
}

/** `check` throws a `RefusedRequest` for a request that the twin rejects. */
function defineFormat(format: Omit<WireFormat, "check" | "streams"> & Partial<WireFormat>, check: Check) {
  return {
    streams: ({ body }: TwinRequest) => fieldsOf(body).stream === true,
    ...format,
    check: (request: TwinRequest, limits: TwinLimits) => catchRefusal(() => check(request, limits)),
  };
}

/** All twins. The OpenAI and Mistral twins accept any API key and store nothing. */
export const wireFormats: Readonly<Record<TwinApi, WireFormat>> = {
  "anthropic-messages": defineFormat(
    {
      api: "anthropic-messages",
      basePath: "/v1",
      contextWindow: 200_000,
      serves: isPostTo("/v1/messages"),
      events: anthropicEvents,
      answer: anthropicAnswer,
      errorBody: anthropicErrorBody,
    },
    checkMessages,
  ),
  "google-generative-ai": defineFormat(
    {
      api: "google-generative-ai",
      basePath: "/v1beta",
      contextWindow: 1_048_576,
      serves: ({ method, path }) =>
        method === "POST" &&
        ["generateContent", "streamGenerateContent"].includes(parsePath(path)?.method ?? ""),
      streams: ({ path }) =>
        parsePath(path)?.method === "streamGenerateContent" && /[?&]alt=sse(?:&|$)/.test(path),
      events: googleEvents,
      answer: googleAnswer,
      errorBody: googleErrorBody,
    },
    checkGenerate,
  ),
  "openai-completions": defineFormat(
    {
      api: "openai-completions",
      basePath: "/v1",
      contextWindow: 128_000,
      serves: isPostTo("/v1/chat/completions"),
      events: chatEvents,
      answer: chatAnswer,
      errorBody: openaiErrorBody,
    },
    checkChat,
  ),
  "openai-responses": defineFormat(
    {
      api: "openai-responses",
      basePath: "/v1",
      contextWindow: 400_000,
      serves: isPostTo("/v1/responses"),
      events: responsesEvents,
      answer: responsesAnswer,
      errorBody: openaiErrorBody,
    },
    checkResponses,
  ),
  "mistral-conversations": defineFormat(
    {
      api: "mistral-conversations",
      basePath: "/v1",
      contextWindow: 131_072,
      serves: isPostTo("/v1/chat/completions"),
      events: mistralEvents,
      answer: mistralAnswer,
      errorBody: mistralErrorBody,
    },
    checkMistral,
  ),
};

export function formatOf(api: TwinApi): WireFormat {
  if (Object.hasOwn(wireFormats, api)) return wireFormats[api];
  throw new SkeinError("invalid_arguments", {
    problem: `There is no twin for "${api}"`,
    advice: `Use one of ${Object.keys(wireFormats).join(", ")}`,
  });
}

/**
 * Checks whether a provider would accept a request, using its twin's rules and without a server. Returns `null` if it
 * would.
 *
 * @example
 * ```ts
 * import { checkRequest } from "skein/testing";
 * const refusal = checkRequest("anthropic-messages", {
 *   method: "POST",
 *   path: "/v1/messages",
 *   headers: { "x-api-key": "any", "anthropic-version": "2023-06-01" },
 *   body: { model: "claude-sonnet-4-5", max_tokens: 100, messages: [{ role: "user", content: "" }] },
 * });
 * console.log(refusal?.rule); // empty_content
 * ```
 */
export function checkRequest(
  api: TwinApi,
  request: TwinRequest,
  limits: Partial<TwinLimits> = {},
): Refusal | null {
  const format = formatOf(api);
  const { contextWindow = format.contextWindow } = limits;
  if (format.serves(request)) return format.check(request, { contextWindow });
  return { status: 404, rule: "not_served", body: format.errorBody(404, "Not Found") };
}
