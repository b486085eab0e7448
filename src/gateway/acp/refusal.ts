import { RequestError } from "@agentclientprotocol/sdk/unstable";
import { thrownText } from "../../core/text.ts";
import { Refused } from "../calls/dispatch.ts";

const numbers = { invalidParams: -32602, internal: -32603, authRequired: -32000, notFound: -32002 };

const byCode: Readonly<Record<string, number>> = {
  not_found: numbers.notFound,
  invalid_arguments: numbers.invalidParams,
  invalid_params: numbers.invalidParams,
  invalid_request: numbers.invalidParams,
  unauthorized: numbers.authRequired,
};

/** An error of ours, or of a gateway, as ACP tells it: our words, and our code beside them. */
export function refusalOf(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  const { code } = (error instanceof Refused ? error.wire : (error ?? {})) as { readonly code?: unknown };
  const known = typeof code === "string" ? code : "internal";
  return refusal(known, thrownText(error));
}

export function refusal(code: string, message: string): RequestError {
  return new RequestError(byCode[code] ?? numbers.internal, message, { code });
}
