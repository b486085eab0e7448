import type { JSONObject } from "@ai-sdk/provider";
import { present } from "../../core/present.ts";

/** How the AI SDK knows its errors without their class. */
const marks = [Symbol.for("vercel.ai.error"), Symbol.for("vercel.ai.error.AI_APICallError")];

export interface FailureOptions {
  /** Left out: the server was not reached. */
  readonly status?: number;
  readonly message: string;
  /** Left out: by the status, as the AI SDK has it. */
  readonly isRetryable?: boolean;
  /** Seconds, as the header has them. */
  readonly retryAfter?: string;
}

/** Fails as a provider's package does: for the AI SDK it is an `APICallError`, though no package is loaded. */
export class ProviderFailure extends Error {
  override readonly name = "AI_APICallError";
  readonly url = "rehearsal:";
  readonly requestBodyValues: JSONObject = {};
  readonly statusCode: number | undefined;
  readonly responseHeaders: Record<string, string>;
  readonly responseBody: string;
  readonly isRetryable: boolean;

  constructor({ status, message, isRetryable, retryAfter }: FailureOptions) {
    super(message);
    this.statusCode = status;
    this.responseHeaders = present({ "retry-after": retryAfter }) as Record<string, string>;
    this.responseBody = JSON.stringify({ error: { message } });
    this.isRetryable = isRetryable ?? isPassing(status);
    for (const mark of marks) Object.defineProperty(this, mark, { value: true });
  }
}

function isPassing(status: number | undefined): boolean {
  return status === undefined || status === 408 || status === 409 || status === 429 || status >= 500;
}
