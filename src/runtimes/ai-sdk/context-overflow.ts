/** What providers say when a request is longer than the model's context window. */
const words: readonly RegExp[] = [
  /prompt is too long/i,
  /request_too_large|request exceeds the maximum size/i,
  /context_length_exceeded/i,
  /maximum context length/i,
  /exceeds? the (?:model's )?(?:maximum |available )?context (?:window|length|size)/i,
  /input token count .{0,40}exceeds/i,
  /too large for model .{0,80}context length/i,
  /input length and `?max_tokens`? exceed context limit/i,
  /too many tokens/i,
];

/** A longer message is read at its beginning: nobody hides this sentence behind a page. */
const mostRead = 4000;

const mostCauses = 8;

interface Failure {
  readonly statusCode?: unknown;
  readonly message?: unknown;
  readonly responseBody?: unknown;
  readonly cause?: unknown;
}

/**
 * Whether a call failed because the request was longer than the context window: then it is worth being made shorter.
 * Anything else, a limit on requests a minute among them, is not.
 */
export function isContextOverflow(error: unknown, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > mostCauses) return false;
  const { statusCode, message, responseBody, cause } = error as Failure;
  if (statusCode === 429 || statusCode === 401 || statusCode === 403) return false;
  if (statusCode === 413) return true;
  const texts = [message, responseBody].filter((text) => typeof text === "string");
  if (texts.some((text) => words.some((word) => word.test(text.slice(0, mostRead))))) return true;
  return isContextOverflow(cause, depth + 1);
}
