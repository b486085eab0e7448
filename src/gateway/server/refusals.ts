import type { WireError } from "../../protocol/errors.ts";
import { wireErrors } from "../../protocol/errors.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import { payloadText } from "../methods/payload-cache.ts";

/** Errors the server returns before dispatching a method. */

export const noToken: WireError = {
  code: "unauthorized",
  message:
    "This request requires a token. Send it as Authorization: Bearer <token>. To create one, run `skein token create`.",
};

export const wrongToken: WireError = {
  code: "unauthorized",
  message: "This token is invalid, revoked, or expired. Use a different token.",
};

export const wrongCode: WireError = {
  code: "unauthorized",
  message: "This link code is invalid, already used, or expired. Run `skein link` to get a new link.",
};

export const shuttingDown: WireError = {
  code: "unavailable",
  message: "The gateway is shutting down. Try again in a moment.",
  retryable: true,
  retryAfterMs: 1000,
};

export const notForClients: WireError = {
  code: "not_found",
  message: "This process executes runs and serves no clients. Connect to a gateway that shares its database.",
};

/** The request line or the headers are not valid HTTP. */
export const notHttp: WireError = {
  code: "invalid_request",
  message: "The request is not valid HTTP. Send HTTP/1.1 with headers of at most 16 KiB.",
};

export const unmetExpectation: WireError = {
  code: "invalid_request",
  message: "The Expect header is not supported. Omit it, or send 100-continue.",
};

/** The upgrade request is not a valid WebSocket handshake. */
export function badHandshake(problem: string): WireError {
  return {
    code: "invalid_request",
    message: `The WebSocket handshake is not valid: ${problem}. Use a client that supports version 13.`,
  };
}

export const tooSlow: WireError = {
  code: "invalid_request",
  message: "The request did not arrive in time. Send it again.",
  retryable: true,
};

export function rateLimited(what: string, retryAfterMs: number): WireError {
  return {
    code: "rate_limited",
    message: `${what}. Wait and try again.`,
    retryable: true,
    retryAfterMs,
  };
}

export function wrongSite(problem: string): WireError {
  return {
    code: "forbidden",
    message: `${problem}. Use an address that the gateway listens on, or add the name to gateway.allowedHosts.`,
  };
}

export function tooLarge(what: string, bytes: number): WireError {
  return {
    code: "too_large",
    message: `${what} is larger than ${bytes} bytes. Send or request less data at a time.`,
  };
}

export function tooManyChunks(maxChunks: number): WireError {
  return {
    code: "too_large",
    message: `The body arrived in more than ${maxChunks} chunks. Send it in larger chunks, or with a Content-Length.`,
  };
}

export function noSuch(what: string): WireError {
  return { code: "not_found", message: `There is no ${what}. /openapi.json lists every path.` };
}

export function malformed(problem: string): WireError {
  return { code: "invalid_request", message: `${problem}.`, details: { problems: [{ path: "", problem }] } };
}

export const tooDeep = malformed("The JSON is nested too deeply");

export const notJsonType = malformed("The body must have the content type application/json, in UTF-8");

/** Returns the headers for an error. */
export function errorHeaders({ code, retryAfterMs }: WireError): Readonly<Record<string, string>> {
  return {
    ...(code === "unauthorized" ? { "www-authenticate": "Bearer" } : {}),
    ...(retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) }),
  };
}

export function statusOf({ code }: WireError): number {
  return wireErrors[code].status;
}

/** Roughly the longest string that V8 allows. */
const longestText = 2 ** 29;

/** Encodes a result as JSON. Throws `too_large` if it exceeds the longest possible string. */
export function jsonText(answer: unknown): string {
  try {
    return payloadText(answer);
  } catch (error) {
    if (error instanceof RangeError) throw new RequestRefusedError(tooLarge("The response", longestText));
    throw error;
  }
}
