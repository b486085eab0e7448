import { keyedProviders } from "../../config/default-model.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Turn } from "../contract.ts";
import type { Failure } from "./failure.ts";

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
