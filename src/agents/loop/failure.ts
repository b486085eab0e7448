import { STATUS_CODES } from "node:http";
import { keyedProviders } from "../../config/default-model.ts";
import { SkeinError } from "../../core/errors.ts";
import { cutText, thrownText } from "../../core/text.ts";
import type { Turn } from "../contract.ts";
import { isContextOverflow } from "../models/context-overflow.ts";
import { AnswerTooLong } from "../models/open-model.ts";
import type { LoopServices } from "./services.ts";

/** Why asking a model failed, whoever says so and however. */
export interface Failure {
  /** `transient`: worth asking again. `sealed_thinking`: worth asking again without it. */
  readonly kind: "transient" | "overflow" | "sealed_thinking" | "auth" | "not_found" | "other";
  /** A short name, for events. */
  readonly code: string;
  /** In the provider's words, cut to a sane length. */
  readonly text: string;
  readonly retryAfterMs: number | null;
}

/** A stream that went wrong without an error of its own. */
export class StreamFailure extends Error {
  override readonly name = "StreamFailure";
  readonly code: "cut" | "stalled" | "filtered" | "overflow";

  constructor(code: StreamFailure["code"], message: string) {
    super(message);
    this.code = code;
  }
}

const longestText = 2000;
const mostCauses = 8;

/** The fields that errors of the SDK, of `fetch` and of a stream are read by. */
interface Told {
  readonly name: string;
  readonly message: string;
  readonly status: number | null;
  /** Words of the error that programs read: its type and code, and its body. */
  readonly words: string;
  readonly headers: unknown;
}

export function failureOf(
  thrown: unknown,
  { clock, redact }: Pick<LoopServices, "clock" | "redact">,
): Failure {
  // The SDK wraps what went wrong while it waited for the first event.
  const error = causesOf(thrown).find((cause) => cause instanceof AnswerTooLong) ?? thrown;
  const told = toldBy(error);
  const text = cutText(redact(told.message), longestText);
  const failure = (kind: Failure["kind"], code: string): Failure => ({
    kind,
    code,
    text,
    retryAfterMs: retryAfterOf(told.headers, clock.now()),
  });
  if (error instanceof AnswerTooLong) return failure("other", "answer_too_long");
  if (error instanceof StreamFailure) {
    if (error.code === "overflow") return failure("overflow", "context_overflow");
    return failure(error.code === "filtered" ? "other" : "transient", error.code);
  }
  if (isContextOverflow(told.status, [told.message, told.words, ...causeTexts(error)]))
    return failure("overflow", "context_overflow");
  const [kind, code] = byStatus(told) ?? byName(error, told) ?? ["other", "model_failed"];
  return failure(kind, code);
}

type Verdict = readonly [Failure["kind"], string];

const noKey = /api[ _-]?key not valid|API_KEY_INVALID|invalid[_ ]api[_ ]key|invalid x-api-key/i;
const noModel = /model_not_found|invalid model|no such model|model[^.]{0,120}(?:not found|does not exist)/i;
/** Anthropic, Google and OpenAI about thinking that they sealed themselves, with another key or for another account. */
const sealedThinking =
  /invalid `?signature`? in `?(?:redacted_)?thinking|(?:corrupted|invalid) (?:value at .{0,80})?thought[_ ]signature|thought[_ ]signature is (?:invalid|not valid)|invalid_encrypted_content|encrypted content .{0,80}could not be verified/i;
/** The account is empty: asking again helps nobody. */
const noCredit = /insufficient_quota|billing_(?:error|hard_limit)|credit balance is too low/i;

function byStatus({ status, message, words }: Told): Verdict | null {
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
  // A stream that began well and then could not be read.
  return status < 300 ? ["transient", "garbled"] : ["other", "model_failed"];
}

const transientWords: readonly (readonly [RegExp, string])[] = [
  [/overloaded|unavailable/i, "overloaded"],
  [/rate_limit|resource_exhausted/i, "rate_limited"],
  [/server_error|api_error|internal|timeout|deadline_exceeded/i, "server_error"],
];

function byName(error: unknown, { name, message, words }: Told): Verdict | null {
  if (name === "AI_LoadAPIKeyError") return ["auth", "model_auth"];
  if (name === "AI_NoSuchModelError") return ["not_found", "model_not_found"];
  if (/^AI_(?:JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody)Error$/.test(name))
    return ["transient", "garbled"];
  if (noCredit.test(words)) return null;
  if (isNetwork(error)) return ["transient", "network"];
  // An error that came as a part of the stream: its type and code are all there is.
  const word = transientWords.find(([pattern]) => pattern.test(words) || pattern.test(message));
  return name === "" && word !== undefined ? ["transient", word[1]] : null;
}

/** Errors of sockets and of `fetch`, however deep inside. */
function isNetwork(error: unknown, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > mostCauses) return false;
  const { code, name, message, cause, isRetryable } = error as Record<string, unknown>;
  if (typeof code === "string" && /^(?:UND_ERR_|E[A-Z]{3,}$)/.test(code)) return true;
  if (name === "TypeError" && /fetch failed|terminated|network/i.test(String(message))) return true;
  if (name === "AbortError" || isRetryable === true) return true;
  return isNetwork(cause, depth + 1);
}

function toldBy(error: unknown): Told {
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

/** The provider's own words where there are any. The SDK puts the bare name of the status in place of a body it cannot read. */
function messageOf(
  { message, responseBody }: Record<string, unknown>,
  inner: Record<string, unknown>,
  status: number | null,
): string | null {
  const said = typeof responseBody === "string" ? wordsInBody(responseBody) : null;
  if (said !== null) return said;
  const own = [message, inner.message].find((each) => typeof each === "string" && each.trim() !== "");
  const isBare = status !== null && status >= 400 && (own === undefined || own === STATUS_CODES[status]);
  if (isBare) return `HTTP ${status} without a reason`;
  return typeof own === "string" ? own : null;
}

/** The sentence in the body of an error, in any of the shapes that servers send; `null`: there is none. */
function wordsInBody(body: string): string | null {
  const text = body.trim();
  if (text === "" || text.startsWith("<")) return null;
  try {
    return sentenceIn(JSON.parse(text));
  } catch {
    return text;
  }
}

const sentenceKeys = ["error", "message", "detail", "errors", "base_resp", "status_msg", "msg"] as const;

function sentenceIn(value: unknown, depth = 0): string | null {
  if (typeof value === "string") return value.trim() === "" ? null : value;
  if (typeof value !== "object" || value === null || depth > 4) return null;
  const fields = value as Record<string, unknown>;
  const inside = Array.isArray(value) ? value.slice(0, 1) : sentenceKeys.map((key) => fields[key]);
  for (const each of inside) {
    const found = sentenceIn(each, depth + 1);
    if (found !== null) return found;
  }
  return null;
}

/** What the errors say that led to this one. */
function causeTexts(error: unknown): string[] {
  return causesOf(error).flatMap(({ message, responseBody }) =>
    [message, responseBody].filter((text) => typeof text === "string"),
  );
}

/** An error and those that led to it. */
function causesOf(error: unknown): Readonly<Record<string, unknown>>[] {
  const causes: Record<string, unknown>[] = [];
  let at: unknown = error;
  while (typeof at === "object" && at !== null && causes.length < mostCauses) {
    const each = at as Record<string, unknown>;
    causes.push(each);
    at = each.cause;
  }
  return causes;
}

/** Some servers wrap the error of a stream once more. */
function nested({ error }: Record<string, unknown>): Record<string, unknown> {
  return typeof error === "object" && error !== null ? (error as Record<string, unknown>) : {};
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return "an error without words";
  }
}

/** A failure as the error that ends a turn. One of our own, such as an address that is missing, stays what it is. */
export function errorOf(
  failure: Failure,
  error: unknown,
  { model }: Turn,
  attempts: number,
  size: { readonly tokens: number; readonly contextWindow: number },
): SkeinError {
  if (error instanceof SkeinError) return error;
  // The error of a call holds the whole request and answer, keys included; the words that may be shown are in the failure.
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
 * `said`: the provider's words, where it refused the request; `null`: nothing was sent. A count that fits the window would
 * contradict the error, and is left out: then the request lacks its older part, or the provider counts more than we do.
 */
export function overflowError(
  { tokens, contextWindow }: { readonly tokens: number; readonly contextWindow: number },
  said: string | null,
): SkeinError {
  const counted =
    tokens > contextWindow ? `about ${tokens} tokens, and the model's window has ${contextWindow}` : null;
  const cut = `its older part does not fit the model's window of ${contextWindow} tokens, and could not be summarized`;
  const problem =
    said === null ? (counted ?? cut) : counted === null ? said : `${said} (counted here: ${counted})`;
  return new SkeinError("context_overflow", { problem });
}

/** How long to wait before a model is asked again. */

const base = 1000;
const most = 30_000;
/** Whatever a server asks for: nobody waits longer for it. */
export const mostRetryAfter = 120_000;

/** What the server asked for, else exponential with full jitter. `retry` counts from 1. */
export function retryDelay(retry: number, retryAfterMs: number | null, random: () => number): number {
  if (retryAfterMs !== null) return Math.min(retryAfterMs, mostRetryAfter);
  return Math.round(random() * Math.min(most, base * 2 ** (retry - 1)));
}

/** From the headers of an answer, in milliseconds: seconds or a date. `null`: it does not say, or nothing of use. */
export function retryAfterOf(headers: unknown, now: number): number | null {
  const inMs = headerOf(headers, "retry-after-ms");
  if (inMs !== null && isCount(inMs)) return Math.round(Number(inMs));
  const given = headerOf(headers, "retry-after");
  if (given === null) return null;
  if (isCount(given)) return Math.round(Number(given) * 1000);
  // A bare number is no date, though some readers of dates take it for a year.
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
