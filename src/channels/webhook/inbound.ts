import type { Clock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import { gatherStream } from "../../core/gather-bytes.ts";
import type { InboundMessage } from "../contract.ts";
import { readInbound } from "./read-inbound.ts";
import { errorResponse, jsonResponse, refusal } from "./respond.ts";
import {
  isSignature,
  isSignedBy,
  isTimely,
  messageIdHeader,
  messageIdPattern,
  mostSkewMs,
  signatureHeader,
  timestampHeader,
} from "./signature.ts";

/** What became of a message: the run that answers it. */
export interface AcceptedInbound {
  readonly runId: string;
  readonly sessionKey: string;
  /** `false`: the same message was accepted before. */
  readonly isNew: boolean;
}

/** Takes a message in. The same key again is the same message, and gives the same run. */
export type AcceptInbound = (message: InboundMessage, idempotencyKey: string) => Promise<AcceptedInbound>;

export interface InboundOptions {
  readonly id: string;
  readonly secret: string;
  readonly accept: AcceptInbound;
  readonly clock: Clock;
  /** What went wrong and was not told to the sender. */
  readonly report: (error: unknown) => void;
}

const signAdvice = "Sign timestamp.messageId.rawBody with the secret of the channel, as sha256=<hex>";

export const mostBodyBytes = 25 * 1024 * 1024;

/** Where the gateway mounts the handler of a webhook. */
export function inboundPath(channelId: string): string {
  return `/channels/${encodeURIComponent(channelId)}/inbound`;
}

/** For example `inbound:desk::m1`. Two messages never have the same one. */
export function inboundKey({ channel, accountId = "", messageId }: InboundMessage): string {
  const escaped = (id: string) => id.replaceAll("%", "%25").replaceAll(":", "%3A");
  return ["inbound", ...[channel, accountId, messageId].map(escaped)].join(":");
}

/** Answers 202 to a new message, 200 to one that is known, and a JSON error to everything else. Never throws. */
export async function handleInbound(request: Request, options: InboundOptions): Promise<Response> {
  if (request.method !== "POST") {
    return refusal(405, `${request.method} is not known here`, "Send messages by POST");
  }
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers.get("content-type") ?? "")) {
    return refusal(415, "The body is not declared as JSON", "Set content-type to application/json");
  }
  try {
    return await takeIn(request, options);
  } catch (error) {
    if (!(error instanceof SkeinError) || error.status >= 500) options.report(error);
    return errorResponse(error);
  }
}

/** Everything that the headers can tell is checked before the body is read, and its signature before it is parsed. */
async function takeIn(request: Request, { id, secret, accept, clock }: InboundOptions): Promise<Response> {
  const { timestamp, messageId, signature } = signatureHeaders(request.headers, clock.now());
  const body = await bodyOf(request);
  if (!isSignedBy(secret, { timestamp, messageId: messageId ?? "", body }, signature)) {
    throw unauthorized(`${signatureHeader} is not the signature of this message`, signAdvice);
  }
  const read = await readInbound(id, body, messageId);
  if ("problems" in read) {
    const problem = `The message is not valid: ${read.problems.map(({ path }) => path || "the body").join(", ")}`;
    const error = new SkeinError("invalid_arguments", {
      problem,
      advice: "See what was expected in problems",
    });
    return errorResponse(error, read.problems);
  }
  const { runId, sessionKey, isNew } = await accept(read.message, inboundKey(read.message));
  return jsonResponse(isNew ? 202 : 200, { runId, sessionKey, status: isNew ? "accepted" : "known" });
}

function signatureHeaders(headers: Headers, now: number) {
  const [timestamp, signature] = [headers.get(timestampHeader), headers.get(signatureHeader)];
  const messageId = headers.get(messageIdHeader);
  if (timestamp === null || signature === null) {
    const problem = `${timestamp === null ? timestampHeader : signatureHeader} is missing`;
    throw unauthorized(problem, "Sign the message; docs/channels.md shows how");
  }
  if (!isSignature(signature)) throw unauthorized(`${signatureHeader} is not a signature`, signAdvice);
  if (!isTimely(timestamp, now)) {
    const problem = `${timestampHeader} is not within ${mostSkewMs / 60_000} minutes of the time here`;
    throw unauthorized(problem, "Give the time of sending, in seconds since 1970, and set the clock");
  }
  if (messageId !== null && !messageIdPattern.test(messageId)) {
    const advice = "Use 1 to 200 printable ASCII characters without spaces, quotes, braces and backslashes";
    throw new SkeinError("invalid_arguments", { problem: `${messageIdHeader} is no message id`, advice });
  }
  return { timestamp, messageId, signature };
}

async function bodyOf(request: Request): Promise<Uint8Array> {
  const isDeclaredTooLarge = Number(request.headers.get("content-length") ?? 0) > mostBodyBytes;
  const body = isDeclaredTooLarge ? null : await gatherStream(request.body, mostBodyBytes);
  if (body === null) throw new SkeinError("body_too_large", { bytes: mostBodyBytes });
  return body;
}

function unauthorized(problem: string, advice: string): SkeinError {
  return new SkeinError("unauthorized", { problem, advice });
}
