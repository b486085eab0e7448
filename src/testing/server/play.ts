import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { cutText } from "../../core/text.ts";
import type { Scripted, ScriptedFault, TwinRequest, WireFormat } from "../twins/contract.ts";

/** No event of any format, and no JSON. */
const garbage = 'data: {"twin": \u0007broken\n\n';

/** Says what was scripted, to the end or as far as the client listens. */
export async function play(
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
    : inHalves(JSON.stringify(format.answer(reply, request, newId)));
  response.writeHead(200, {
    "content-type": isStream ? "text/event-stream; charset=utf-8" : "application/json",
    "cache-control": "no-cache",
  });
  if (fault === null) return finish(pieces, response);
  if (fault.fault === "slow") return finish(crumbs(pieces, fault.bytes), response);
  // An answer that is no stream goes wrong in its middle.
  const before = isStream ? fault.afterEvents : 1;
  if (!(await send(pieces.slice(0, before), response))) return;
  if (fault.fault === "garbage") return finish([garbage, ...pieces.slice(before)], response);
  // What was sent has left already, so that the client has it when the connection goes.
  if (fault.fault === "cut") response.destroy();
  else if (!response.destroyed) await once(response, "close");
}

function sendStatus(
  fault: Extract<ScriptedFault, { fault: "status" }>,
  format: WireFormat,
  response: ServerResponse,
): void {
  const { status, retryAfter, message = "The twin was told to answer so." } = fault;
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

/** One write a piece, each once the one before has left. `false`: the client is gone. */
async function send(pieces: Iterable<string | Uint8Array>, response: ServerResponse): Promise<boolean> {
  for (const piece of pieces) {
    if (response.destroyed) return false;
    const hasLeft = await new Promise<boolean>((resolve) => {
      response.write(piece, (error) => resolve(error === null || error === undefined));
    });
    if (!hasLeft) return false;
  }
  return true;
}

/** The same bytes, a few at a time; characters are not kept together. */
function* crumbs(pieces: readonly string[], bytes: number): Generator<Uint8Array> {
  for (const piece of pieces) {
    const whole = Buffer.from(piece);
    for (let from = 0; from < whole.length; from += bytes) yield whole.subarray(from, from + bytes);
  }
}

function inHalves(text: string): readonly string[] {
  const first = cutText(text, Math.floor(text.length / 2));
  return [first, text.slice(first.length)];
}
