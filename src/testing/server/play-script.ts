import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { cutText } from "../../core/text.ts";
import type { Scripted, ScriptedFault, TwinRequest, WireFormat } from "../twins/contract.ts";

/** Not a valid event in any format, and not JSON. */
const garbage = 'data: {"twin": \u0007broken\n\n';

/** Sends a scripted reply or fault until it is complete or the client disconnects. */
export async function playScript(
  scripted: Scripted,
  request: TwinRequest,
  format: WireFormat,
  newId: () => string,
  response: ServerResponse,
): Promise<void> {
  if ("fault" in scripted && scripted.fault === "status") return sendStatus(scripted, format, response);
  const reply = "fault" in scripted ? scripted.reply : scripted;
  const fault = "fault" in scripted ? scripted : null;
  const isStream = format.streams(request);
  const pieces = isStream
    ? format.events(reply, request, newId)
    : splitInHalves(JSON.stringify(format.answer(reply, request, newId)));
  response.writeHead(200, {
    "content-type": isStream ? "text/event-stream; charset=utf-8" : "application/json",
    "cache-control": "no-cache",
  });
  if (fault === null) return finish(pieces, response);
  if (fault.fault === "slow") return finish(splitBytes(pieces, fault.bytes), response);
  // An answer that is not streamed fails halfway through.
  const before = isStream ? fault.afterEvents : 1;
  if (!(await send(pieces.slice(0, before), response))) return;
  if (fault.fault === "garbage") return finish([garbage, ...pieces.slice(before)], response);
  // The data has been flushed, so the client receives it before the connection closes.
  if (fault.fault === "cut") response.destroy();
  else if (!response.destroyed) await once(response, "close");
}

function sendStatus(
  fault: Extract<ScriptedFault, { fault: "status" }>,
  format: WireFormat,
  response: ServerResponse,
): void {
  const { status, retryAfter, message = "The twin was scripted to fail." } = fault;
  const headers = retryAfter === undefined ? {} : { "retry-after": retryAfter };
  sendJson(response, status, format.errorBody(status, message), headers);
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

async function finish(pieces: Iterable<string | Uint8Array>, response: ServerResponse): Promise<void> {
  if (await send(pieces, response)) response.end();
}

/** Writes one piece at a time, after the previous one has been flushed. Returns `false` if the client has disconnected. */
async function send(pieces: Iterable<string | Uint8Array>, response: ServerResponse): Promise<boolean> {
  for (const piece of pieces) {
    if (response.destroyed) return false;
    const isFlushed = await new Promise<boolean>((resolve) => {
      response.write(piece, (error) => resolve(error === null || error === undefined));
    });
    if (!isFlushed) return false;
  }
  return true;
}

/** Yields the same bytes a few at a time. A chunk can split a character. */
function* splitBytes(pieces: readonly string[], bytes: number): Generator<Uint8Array> {
  for (const piece of pieces) {
    const whole = Buffer.from(piece);
    for (let from = 0; from < whole.length; from += bytes) yield whole.subarray(from, from + bytes);
  }
}

function splitInHalves(text: string): readonly string[] {
  const first = cutText(text, Math.floor(text.length / 2));
  return [first, text.slice(first.length)];
}

/**
 * Checks scripts at run time because tests can also be written in plain JavaScript. An error is reported at the point
 * where the script is queued.
 */
export function checkScripts(scripts: readonly unknown[]): asserts scripts is readonly Scripted[] {
  for (const script of scripts) {
    const expected = problemOf(script);
    if (expected === null) continue;
    throw new SkeinError("invalid_arguments", {
      problem: "This twin script is invalid",
      advice: `Expected ${expected}`,
    });
  }
}

const reply = '{ content: [{ type: "text", text }] }';
const faults = ["status", "cut", "stall", "garbage", "slow"];

/** Describes what was expected, or returns `null` if the script is valid. */
function problemOf(script: unknown): string | null {
  if (!isRecord(script)) return `a reply such as ${reply}, or a fault`;
  if (!("fault" in script)) return problemOfReply(script);
  if (!faults.includes(String(script.fault))) return `fault to be one of ${faults.join(", ")}`;
  if (script.fault === "status") {
    const { status } = script;
    const isStatus = Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599;
    return isStatus ? null : 'fault "status" to have a status from 200 to 599';
  }
  if (script.fault === "slow") {
    const isCount = Number.isInteger(script.bytes) && Number(script.bytes) > 0;
    return isCount ? problemOfFaulty(script) : 'fault "slow" to have a number of bytes';
  }
  const { afterEvents } = script;
  if (!Number.isInteger(afterEvents) || Number(afterEvents) < 0)
    return `fault "${String(script.fault)}" to have afterEvents, a number of events`;
  return problemOfFaulty(script);
}

function problemOfFaulty({ reply: of }: Readonly<Record<string, unknown>>): string | null {
  return isRecord(of) ? problemOfReply(of) : `the fault's reply, such as ${reply}`;
}

function problemOfReply({ content, stopReason, usage }: Readonly<Record<string, unknown>>): string | null {
  if (!Array.isArray(content)) return `a reply with content, such as ${reply}`;
  const reasons = ["stop", "length", "toolUse"];
  if (stopReason !== undefined && !reasons.includes(String(stopReason)))
    return `stopReason to be one of ${reasons.join(", ")}`;
  if (usage !== undefined && !(isRecord(usage) && Object.values(usage).every(Number.isFinite)))
    return "usage with numbers, such as { input: 200, output: 40 }";
  for (const [index, block] of content.entries()) {
    const expected = problemOfBlock(block);
    if (expected !== null) return `content[${index}] to be ${expected}`;
  }
  return null;
}

function problemOfBlock(block: unknown): string | null {
  const { type, text, thinking, name, arguments: given } = isRecord(block) ? block : {};
  switch (type) {
    case "text":
      return typeof text === "string" ? null : "a text block with text";
    case "thinking":
      return typeof thinking === "string" ? null : "a thinking block with thinking";
    case "toolCall":
      return typeof name === "string" && isRecord(given)
        ? null
        : "a toolCall block with a name and arguments";
    default:
      return "a block of type text, thinking or toolCall";
  }
}
