import { keyedProviders } from "../../config/default-model.ts";
import { SkeinError } from "../../core/errors.ts";
import { cutText, thrownText } from "../../core/text.ts";
import type { Turn } from "../contract.ts";
import { isContextOverflow } from "../models/context-overflow.ts";
import { AnswerTooLong } from "../models/open-model.ts";
import type { LoopServices } from "./services.ts";

/** Not loaded with `import`, which would also load the `fetch` and WebSocket code that `node:http` exports. */
const { STATUS_CODES } = process.getBuiltinModule("node:http");

/** Why a request to a model failed. */
export interface Failure {
  /**
   * `transient` failures are worth retrying. `sealed_thinking` failures are worth retrying without encrypted thinking.
   */
  readonly kind: "transient" | "overflow" | "sealed_thinking" | "auth" | "not_found" | "other";
  /** The code reported in events. */
  readonly code: string;
  /** The provider's message, truncated. */
  readonly text: string;
  readonly retryAfterMs: number | null;
}

/** Thrown when a stream fails without reporting an error. */
export class StreamFailure extends Error {
  override readonly name = "StreamFailure";
  readonly code: "cut" | "stalled" | "filtered" | "overflow";

  constructor(code: StreamFailure["code"], message: string) {
    super(message);
    this.code = code;
  }
}

const maxTextLength = 2000;
const maxCauses = 8;

/** The fields read from SDK, `fetch` and stream errors. */
interface ErrorFacts {
  readonly name: string;
  readonly message: string;
  readonly status: number | null;
  /** The error's type, code and body. */
  readonly words: string;
  readonly headers: unknown;
}

export function failureOf(
  thrown: unknown,
  { clock, redact }: Pick<LoopServices, "clock" | "redact">,
): Failure {
  // The SDK wraps errors that occur before the first event.
  const error = causesOf(thrown).find((cause) => cause instanceof AnswerTooLong) ?? thrown;
  const facts = readError(error);
  const text = cutText(redact(facts.message), maxTextLength);
  const failure = (kind: Failure["kind"], code: string): Failure => ({
    kind,
    code,
    text,
    retryAfterMs: retryAfterOf(facts.headers, clock.now()),
  });
  if (error instanceof AnswerTooLong) return failure("other", "answer_too_long");
  if (error instanceof StreamFailure) {
    if (error.code === "overflow") return failure("overflow", "context_overflow");
    return failure(error.code === "filtered" ? "other" : "transient", error.code);
  }
  if (isContextOverflow(facts.status, [facts.message, facts.words, ...causeTexts(error)]))
    return failure("overflow", "context_overflow");
  const [kind, code] = byStatus(facts) ?? byName(error, facts) ?? ["other", "model_failed"];
  return failure(kind, code);
}

type Verdict = readonly [Failure["kind"], string];

const noKey = /api[ _-]?key not valid|API_KEY_INVALID|invalid[_ ]api[_ ]key|invalid x-api-key/i;
const noModel = /model_not_found|invalid model|no such model|model[^.]{0,120}(?:not found|does not exist)/i;
/** The messages with which Anthropic, Google and OpenAI reject encrypted thinking from another key or account. */
const sealedThinking =
  /invalid `?signature`? in `?(?:redacted_)?thinking|(?:corrupted|invalid) (?:value at .{0,80})?thought[_ ]signature|thought[_ ]signature is (?:invalid|not valid)|invalid_encrypted_content|encrypted content .{0,80}could not be verified/i;
/** Matches errors of accounts without credit, for which a retry cannot succeed. */
const noCredit = /insufficient_quota|billing_(?:error|hard_limit)|credit balance is too low/i;

function byStatus({ status, message, words }: ErrorFacts): Verdict | null {
  if (status === null) return null;
  const all = `${message}\n${words}`;
  if (status === 401 || status === 403 || (status === 400 && noKey.test(all))) return ["auth", "model_auth"];
  if (status === 404 || ((status === 400 || status === 422) && noModel.test(all)))
    return ["not_found", "model_not_found"];
  if (status === 400 && sealedThinking.test(all)) return ["sealed_thinking", "thinking_rejected"];
  if (noCredit.test(all)) return ["other", "model_failed"];
  if (status === 429) return ["transient", "rate_limited"];
  if (status === 529 || status === 503) return ["transient", "overloaded"];
  if (status >= 500 || status === 408 || status === 409) return ["transient", "server_error"];
  // The response started, but the stream could not be parsed.
  return status < 300 ? ["transient", "garbled"] : ["other", "model_failed"];
}

const transientWords: readonly (readonly [RegExp, string])[] = [
  [/overloaded|unavailable/i, "overloaded"],
  [/rate_limit|resource_exhausted/i, "rate_limited"],
  [/server_error|api_error|internal|timeout|deadline_exceeded/i, "server_error"],
];

function byName(error: unknown, { name, message, words }: ErrorFacts): Verdict | null {
  if (name === "AI_LoadAPIKeyError") return ["auth", "model_auth"];
  if (name === "AI_NoSuchModelError") return ["not_found", "model_not_found"];
  if (/^AI_(?:JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody)Error$/.test(name))
    return ["transient", "garbled"];
  if (noCredit.test(words)) return null;
  if (isNetwork(error)) return ["transient", "network"];
  // A stream's error part has no status, only a type and a code.
  const word = transientWords.find(([pattern]) => pattern.test(words) || pattern.test(message));
  return name === "" && word !== undefined ? ["transient", word[1]] : null;
}

/** Whether the error or one of its causes is a socket or `fetch` error. */
function isNetwork(error: unknown, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > maxCauses) return false;
  const { code, name, message, cause, isRetryable } = error as Record<string, unknown>;
  if (typeof code === "string" && /^(?:UND_ERR_|E[A-Z]{3,}$)/.test(code)) return true;
  if (name === "TypeError" && /fetch failed|terminated|network/i.test(String(message))) return true;
  if (name === "AbortError" || isRetryable === true) return true;
  return isNetwork(cause, depth + 1);
}

function readError(error: unknown): ErrorFacts {
  const none = { name: "", message: thrownText(error), status: null, words: "", headers: null };
  if (typeof error !== "object" || error === null) return none;
  const fields = error as Record<string, unknown>;
  const inner = nested(fields);
  const texts = [fields.type, fields.code, fields.responseBody, inner.type, inner.code, inner.status];
  const status = typeof fields.statusCode === "number" ? fields.statusCode : null;
  return {
    name: error instanceof Error ? error.name : "",
    message: messageOf(fields, inner, status) ?? jsonOf(error),
    status,
    words: texts.filter((each) => typeof each === "string").join("\n"),
    headers: fields.responseHeaders ?? null,
  };
}

/**
 * Returns the provider's own message, if there is one. The SDK replaces a body it cannot parse with the HTTP status
 * text.
 */
function messageOf(
  { message, responseBody }: Record<string, unknown>,
  inner: Record<string, unknown>,
  status: number | null,
): string | null {
  const sent = typeof responseBody === "string" ? messageInBody(responseBody) : null;
  if (sent !== null) return sent;
  const own = [message, inner.message].find((each) => typeof each === "string" && each.trim() !== "");
  const isBare = status !== null && status >= 400 && (own === undefined || own === STATUS_CODES[status]);
  if (isBare) return `HTTP ${status} without an error message`;
  return typeof own === "string" ? own : null;
}

/** Returns the message in an error body, in any of the shapes that servers send, or `null` if there is none. */
function messageInBody(body: string): string | null {
  const text = body.trim();
  if (text === "" || text.startsWith("<")) return null;
  try {
    return messageIn(JSON.parse(text));
  } catch {
    return text;
  }
}

const messageKeys = ["error", "message", "detail", "errors", "base_resp", "status_msg", "msg"] as const;

function messageIn(value: unknown, depth = 0): string | null {
  if (typeof value === "string") return value.trim() === "" ? null : value;
  if (typeof value !== "object" || value === null || depth > 4) return null;
  const fields = value as Record<string, unknown>;
  const inside = Array.isArray(value) ? value.slice(0, 1) : messageKeys.map((key) => fields[key]);
  for (const each of inside) {
    const found = messageIn(each, depth + 1);
    if (found !== null) return found;
  }
  return null;
}

/** Returns the messages and bodies of an error and its causes. */
function causeTexts(error: unknown): string[] {
  return causesOf(error).flatMap(({ message, responseBody }) =>
    [message, responseBody].filter((text) => typeof text === "string"),
  );
}

/** Returns an error and its causes. */
function causesOf(error: unknown): Readonly<Record<string, unknown>>[] {
  const causes: Record<string, unknown>[] = [];
  let at: unknown = error;
  while (typeof at === "object" && at !== null && causes.length < maxCauses) {
    const each = at as Record<string, unknown>;
    causes.push(each);
    at = each.cause;
  }
  return causes;
}

/** Unwraps a stream error that the server has wrapped twice. */
function nested({ error }: Record<string, unknown>): Record<string, unknown> {
  return typeof error === "object" && error !== null ? (error as Record<string, unknown>) : {};
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return "an error without a message";
  }
}

/** Returns the error that ends the turn. A SkeinError, such as a missing base URL, is returned unchanged. */
export function errorOf(
  failure: Failure,
  error: unknown,
  { model }: Turn,
  attempts: number,
  size: { readonly tokens: number; readonly contextWindow: number },
): SkeinError {
  if (error instanceof SkeinError) return error;
  // A call error contains the whole request, including keys, so only the failure text can be shown.
  const isCall = typeof error === "object" && error !== null && "responseBody" in error;
  const cause = isCall ? undefined : error;
  const { provider } = model;
  const name = `${provider}/${model.model}`;
  const problem = failure.text.replace(/[.\s]+$/, "");
  switch (failure.kind) {
    case "overflow":
      return overflowError(size, problem);
    case "auth": {
      const keyed = keyedProviders.find((known) => known.provider === provider);
      const setting = `models.providers.${provider}.apiKey`;
      const variable = keyed?.variables.join(" or ") ?? "its key";
      return new SkeinError("model_auth", { model: name, problem, variable, setting }, { cause });
    }
    case "not_found":
      return new SkeinError("model_not_found", { model: name, problem }, { cause });
    default:
      return new SkeinError("model_failed", { model: name, attempts, problem }, { cause });
  }
}

/**
 * `refusal` is the provider's message, or `null` if nothing was sent. Our token count is omitted if it fits in the
 * window, because it would contradict the error. In that case, either the provider counted more tokens than we did, or
 * the request is missing its older part.
 */
export function overflowError(
  { tokens, contextWindow }: { readonly tokens: number; readonly contextWindow: number },
  refusal: string | null,
): SkeinError {
  const counted =
    tokens > contextWindow
      ? `about ${tokens} tokens, but the model's window is ${contextWindow} tokens`
      : null;
  const cut = `its older part does not fit in the model's window of ${contextWindow} tokens and could not be summarized`;
  const problem =
    refusal === null
      ? (counted ?? cut)
      : counted === null
        ? refusal
        : `${refusal} (counted locally: ${counted})`;
  return new SkeinError("context_overflow", { problem });
}

const baseDelayMs = 1000;
const maxDelayMs = 30_000;
/** The longest delay that a server can request. */
export const maxRetryAfterMs = 120_000;

/**
 * Returns the delay before a retry: the server's `retry-after` if given, otherwise exponential backoff with full
 * jitter. `retry` starts at 1.
 */
export function retryDelay(retry: number, retryAfterMs: number | null, random: () => number): number {
  if (retryAfterMs !== null) return Math.min(retryAfterMs, maxRetryAfterMs);
  return Math.round(random() * Math.min(maxDelayMs, baseDelayMs * 2 ** (retry - 1)));
}

/** Returns `retry-after` in milliseconds, from seconds or a date, or `null` if it is missing or invalid. */
export function retryAfterOf(headers: unknown, now: number): number | null {
  const inMs = headerOf(headers, "retry-after-ms");
  if (inMs !== null && isCount(inMs)) return Math.round(Number(inMs));
  const given = headerOf(headers, "retry-after");
  if (given === null) return null;
  if (isCount(given)) return Math.round(Number(given) * 1000);
  // `Date.parse` would read a bare number as a year.
  const date = /[a-z]/i.test(given) ? Date.parse(given) : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

function isCount(text: string): boolean {
  return /^\d{1,12}(?:\.\d{1,9})?$/.test(text);
}

function headerOf(headers: unknown, name: string): string | null {
  if (typeof headers !== "object" || headers === null) return null;
  const found = Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  return typeof found === "string" ? found.trim() : null;
}
