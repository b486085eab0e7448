import { RequestError } from "@agentclientprotocol/sdk/unstable";
import type { ErrorCode } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import { Refused } from "../../gateway/methods/dispatch.ts";
import { wiredErrors } from "../../protocol/errors.ts";

const failed = -32603;

/** By the codes of the wire, which are what a gateway answers with. */
const numbers: Readonly<Record<string, number>> = {
  not_found: -32002,
  invalid_request: -32602,
  unauthorized: -32000,
};

/** An error of ours, or of a gateway, as ACP tells it: our words, and beside them the code of `docs/errors.md`. */
export function refusalOf(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  const { code, reason } = (error instanceof Refused ? error.wire : (error ?? {})) as {
    readonly code?: unknown;
    readonly reason?: unknown;
  };
  const known = typeof code === "string" ? code : "internal";
  const wired = Object.hasOwn(wiredErrors, known) ? wiredErrors[known as ErrorCode].code : known;
  const told = typeof reason === "string" ? reason : known;
  return new RequestError(numbers[wired] ?? failed, thrownText(error), { code: told });
}

/** A turn that failed, whatever by: nothing is wrong with the request. */
export function failedTurn(code: string, message: string): RequestError {
  return new RequestError(failed, message, { code });
}
