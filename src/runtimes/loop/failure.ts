import { cutText, thrownText } from "../../core/text.ts";
import { isContextOverflow } from "../ai-sdk/context-overflow.ts";
import { retryAfterOf } from "./retry-delay.ts";

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
  readonly code: "cut" | "stalled" | "filtered";

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

export function failureOf(error: unknown, now: number): Failure {
  const told = toldBy(error);
  const text = cutText(told.message, longestText);
  const failure = (kind: Failure["kind"], code: string): Failure => ({
    kind,
    code,
    text,
    retryAfterMs: retryAfterOf(told.headers, now),
  });
  if (error instanceof StreamFailure) {
    return failure(error.code === "filtered" ? "other" : "transient", error.code);
  }
  if (isContextOverflow(error) || isContextOverflow(asError(error)))
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
  const said = [fields.message, inner.message].find((each) => typeof each === "string" && each !== "");
  return {
    name: error instanceof Error ? error.name : "",
    message: typeof said === "string" ? said : jsonOf(error),
    status: typeof fields.statusCode === "number" ? fields.statusCode : null,
    words: texts.filter((each) => typeof each === "string").join("\n"),
    headers: fields.responseHeaders ?? null,
  };
}

/** Some servers wrap the error of a stream once more. */
function nested({ error }: Record<string, unknown>): Record<string, unknown> {
  return typeof error === "object" && error !== null ? (error as Record<string, unknown>) : {};
}

function asError(error: unknown): unknown {
  return error instanceof Error ? error : { message: toldBy(error).message };
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return "an error without words";
  }
}
