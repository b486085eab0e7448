import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import type { ErrorCode } from "../core/errors.ts";
import { SkeinError } from "../core/errors.ts";
import { gatherStream } from "../core/gather-bytes.ts";
import { isRecord } from "../core/is-record.ts";
import { parseJson } from "../core/parse-json.ts";
import { isBase64 } from "../core/text.ts";
import type { InboundMessage } from "./contract.ts";

/** The run that answers an inbound message. */
export interface AcceptedInbound {
  readonly runId: string;
  readonly sessionKey: string;
  /** `false` for a duplicate. */
  readonly isNew: boolean;
}

export type AcceptInbound = (message: InboundMessage, idempotencyKey: string) => Promise<AcceptedInbound>;

export interface InboundOptions {
  /** The channel's name in keys, and in the path of its inbound messages. */
  readonly id: string;
  readonly secret: string;
  readonly accept: AcceptInbound;
  readonly clock: Clock;
  /** Reports an error that is not included in the response to the sender. */
  readonly report: (error: unknown) => void;
}

export const maxBodyBytes = 25 * 1024 * 1024;

/** Returns the idempotency key for a message, for example `inbound:desk::m1`. */
export function inboundKey({ channel, accountId = "", messageId }: InboundMessage): string {
  const escapeId = (id: string) => id.replaceAll("%", "%25").replaceAll(":", "%3A");
  return ["inbound", ...[channel, accountId, messageId].map(escapeId)].join(":");
}

/** Responds with 202 to a new message, 200 to a duplicate, and a JSON error to anything else. Never throws. */
export async function handleInbound(request: Request, options: InboundOptions): Promise<Response> {
  if (request.method !== "POST")
    return refuse(405, `The method ${request.method} is not supported`, "Send messages with POST");
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers.get("content-type") ?? ""))
    return refuse(415, "The content type is not JSON", "Set content-type to application/json");
  try {
    return await acceptRequest(request, options);
  } catch (error) {
    if (!(error instanceof SkeinError) || error.status >= 500) options.report(error);
    return errorResponse(error);
  }
}

/** Checks the headers before the body is read, and the signature before the body is parsed. */
async function acceptRequest(
  request: Request,
  { id, secret, accept, clock }: InboundOptions,
): Promise<Response> {
  const { timestamp, messageId, signature } = readHeaders(request.headers, clock.now());
  const body = await readBody(request);
  if (!isSignedBy(secret, { timestamp, messageId: messageId ?? "", body }, signature))
    throw unauthorized(`${signatureHeader} is not a valid signature for this message`, signAdvice);
  const read = await readMessage(id, body, messageId);
  if ("problems" in read) {
    const fields = read.problems.map(({ path }) => path || "the body").join(", ");
    const problem = `The message is invalid: ${fields}`;
    const advice = "See the field problems for what was expected";
    return errorResponse(new SkeinError("invalid_arguments", { problem, advice }), read.problems);
  }
  const { runId, sessionKey, isNew } = await accept(read.message, inboundKey(read.message));
  return jsonResponse(isNew ? 202 : 200, { runId, sessionKey, status: isNew ? "accepted" : "known" });
}

const signAdvice = "Sign timestamp.messageId.rawBody with the channel's secret, in the format sha256=<hex>";
const messageIdRule = "1 to 200 printable ASCII characters without spaces, quotes, braces or backslashes";

function readHeaders(headers: Headers, now: number) {
  const [timestamp, signature] = [headers.get(timestampHeader), headers.get(signatureHeader)];
  const messageId = headers.get(messageIdHeader);
  if (timestamp === null || signature === null) {
    const problem = `${timestamp === null ? timestampHeader : signatureHeader} is missing`;
    throw unauthorized(problem, "Sign the message; docs/channels.md shows how");
  }
  if (!signaturePattern.test(signature))
    throw unauthorized(`${signatureHeader} is not in the signature format`, signAdvice);
  if (!isTimely(timestamp, now)) {
    const problem = `${timestampHeader} differs from the server's time by more than ${maxSkewMs / 60_000} minutes`;
    throw unauthorized(problem, "Send the current time in seconds since 1970, and check the clock");
  }
  if (messageId !== null && !messageIdPattern.test(messageId)) {
    const problem = `${messageIdHeader} is not a valid message ID`;
    throw new SkeinError("invalid_arguments", { problem, advice: `Use ${messageIdRule}` });
  }
  return { timestamp, messageId, signature };
}

async function readBody(request: Request): Promise<Uint8Array> {
  const isDeclaredTooLarge = Number(request.headers.get("content-length") ?? 0) > maxBodyBytes;
  const body = isDeclaredTooLarge ? null : await gatherStream(request.body, maxBodyBytes);
  if (body === null) throw new SkeinError("body_too_large", { bytes: maxBodyBytes });
  return body;
}

function unauthorized(problem: string, advice: string): SkeinError {
  return new SkeinError("unauthorized", { problem, advice });
}

/** A problem with a field. */
interface FieldProblem {
  /** For example, `images[0].data`. Empty for the whole body. */
  readonly path: string;
  readonly expected: string;
}

type Fields = Readonly<Record<string, unknown>>;

const optionalTexts = ["peerName", "group", "threadId", "accountId", "agentId"] as const;
const knownFields = ["text", "peer", "messageId", "images", ...optionalTexts];

/** Returns the message, or all problems with it. The message ID in the header overrides the one in the body. */
async function readMessage(
  channel: string,
  body: Uint8Array,
  headerId: string | null,
): Promise<{ readonly message: InboundMessage } | { readonly problems: readonly FieldProblem[] }> {
  const value = await parseBody(body);
  if (!isRecord(value)) return { problems: [{ path: "", expected: "a JSON object encoded as UTF-8" }] };
  const { messageId: bodyId, ...fields } = value;
  const messageId = headerId ?? bodyId;
  const isIdValid = typeof messageId === "string" && messageIdPattern.test(messageId);
  const problems = [
    ...textProblems(value),
    ...(isIdValid ? [] : [{ path: "messageId", expected: messageIdRule }]),
    ...imageProblems(value.images),
  ];
  for (const path of Object.keys(value).filter((key) => !knownFields.includes(key)))
    problems.push({ path, expected: `no such field; the known fields are ${knownFields.join(", ")}` });
  if (problems.length > 0) return { problems };
  return { message: { text: "", ...fields, channel, messageId } as unknown as InboundMessage };
}

function textProblems({ text, peer, images, ...others }: Fields): FieldProblem[] {
  const hasImages = Array.isArray(images) && images.length > 0;
  const isTextFine = isNonEmpty(text) || (hasImages && (text === undefined || text === ""));
  return [
    ...(isTextFine ? [] : [{ path: "text", expected: "a non-empty string, unless there are images" }]),
    ...(isNonEmpty(peer) ? [] : [{ path: "peer", expected: "a non-empty string" }]),
    ...optionalTexts
      .filter((path) => others[path] !== undefined && !isNonEmpty(others[path]))
      .map((path) => ({ path, expected: "a non-empty string, or no value" })),
  ];
}

function imageProblems(images: unknown): FieldProblem[] {
  if (images === undefined) return [];
  if (!Array.isArray(images)) return [{ path: "images", expected: "a list" }];
  return images.flatMap((image: unknown, index) => {
    const path = `images[${index}]`;
    if (!isRecord(image)) return [{ path, expected: "an object with data and mimeType" }];
    const { data, mimeType, ...others } = image;
    const isData = typeof data === "string" && isBase64(data);
    const isType = typeof mimeType === "string" && /^image\/[a-z0-9.+-]+$/.test(mimeType);
    return [
      ...(isData ? [] : [{ path: `${path}.data`, expected: "base64" }]),
      ...(isType ? [] : [{ path: `${path}.mimeType`, expected: "an image type, such as image/png" }]),
      ...Object.keys(others).map((key) => ({ path: `${path}.${key}`, expected: "nothing" })),
    ];
  });
}

async function parseBody(body: Uint8Array): Promise<unknown> {
  try {
    return await parseJson(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

function isNonEmpty(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

/** Errors whose messages contain only data that the sender sent or is allowed to see. */
const publicErrors: ReadonlySet<ErrorCode> = new Set([
  "unauthorized",
  "body_too_large",
  "message_too_large",
  "invalid_arguments",
  "invalid_agent_id",
  "invalid_user_id",
  "invalid_key",
  "forbidden",
  "not_found",
  "conflict",
  "idempotency_conflict",
]);

function errorResponse(error: unknown, problems?: readonly FieldProblem[]): Response {
  const known = error instanceof SkeinError ? error : null;
  const [code, status] = [known?.code ?? "internal", known?.status ?? 500];
  const isPublic = known !== null && publicErrors.has(known.code);
  const text = isPublic ? known.message : "The message was not accepted. Retry with the same message ID.";
  return jsonResponse(status, { code, error: text, ...(problems !== undefined && { problems }) });
}

/** Rejects a request with an HTTP status that no `SkeinError` maps to. */
function refuse(status: 405 | 415, problem: string, advice: string): Response {
  const { code, message } = new SkeinError("invalid_arguments", { problem, advice });
  return jsonResponse(status, { code, error: message }, status === 405 ? { allow: "POST" } : {});
}

function jsonResponse(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json; charset=utf-8", "cache-control": "no-store", ...headers },
  });
}

/** Messages are signed in both directions, using HMAC-SHA256 over `timestamp.messageId.rawBody`. */
export const timestampHeader = "x-skein-timestamp";
export const messageIdHeader = "x-skein-message-id";
export const signatureHeader = "x-skein-signature";

/** The maximum difference between the two sides' clocks. */
export const maxSkewMs = 5 * 60_000;

/**
 * Excludes quotes, braces and backslashes. If they were allowed, one message's signature would also be valid for
 * another message whose ID continues into the body of the first.
 */
export const messageIdPattern = /^[!#-[\]-z|~]{1,200}$/;

export interface SignedMessage {
  /** Seconds since 1970, as digits. */
  readonly timestamp: string;
  /** Empty if the ID is in the body. */
  readonly messageId: string;
  readonly body: Uint8Array | string;
}

/** For example `sha256=5f1c…`. */
export function signatureOf(secret: string, message: SignedMessage): string {
  return `sha256=${hmacOf(secret, message).toString("hex")}`;
}

const signaturePattern = /^sha256=([0-9a-fA-F]{64})$/;

/** Compares in constant time. */
export function isSignedBy(secret: string, message: SignedMessage, signature: string): boolean {
  const [, hex] = signaturePattern.exec(signature) ?? [];
  return hex !== undefined && timingSafeEqual(hmacOf(secret, message), Buffer.from(hex, "hex"));
}

export function isTimely(timestamp: string, now: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(Number(timestamp) * 1000 - now) <= maxSkewMs;
}

function hmacOf(secret: string, { timestamp, messageId, body }: SignedMessage): Buffer {
  return createHmac("sha256", secret).update(`${timestamp}.${messageId}.`).update(body).digest();
}
