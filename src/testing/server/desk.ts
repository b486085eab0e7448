import type { IncomingMessage, ServerResponse } from "node:http";
import type { Refusal, Scripted, TwinLimits, TwinRequest, WireFormat } from "../twins/contract.ts";
import { checkScripts } from "./check-script.ts";
import { idSource } from "./ids.ts";
import { play, sendJson } from "./play.ts";
import type { Body } from "./read-body.ts";
import { BodyReader } from "./read-body.ts";
import type { ReceivedRequest } from "./request-log.ts";
import { RequestLog } from "./request-log.ts";

/** What the twin says when nothing is queued. */
const usual = (): Scripted => ({ content: [{ type: "text", text: "The twin has nothing to add." }] });

/** Takes requests in, refuses what the provider refuses, and answers the rest from the queue. */
export class Desk {
  readonly log = new RequestLog();
  readonly #format: WireFormat;
  readonly #limits: TwinLimits;
  readonly #queue: Scripted[] = [];
  readonly #otherwise: (request: TwinRequest) => Scripted;
  readonly #reader = new BodyReader();
  readonly #newId = idSource();

  constructor(format: WireFormat, limits: TwinLimits, otherwise: (request: TwinRequest) => Scripted = usual) {
    this.#format = format;
    this.#limits = limits;
    this.#otherwise = otherwise;
  }

  enqueue(scripted: readonly Scripted[]): void {
    checkScripts(scripted);
    this.#queue.push(...scripted);
  }

  async take(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader("request-id", `req_011${this.#newId()}`);
    const request = await this.#read(incoming);
    if (request === null) return;
    if (request.refusal !== null) {
      const { status, body, headers } = request.refusal;
      return sendJson(response, status, body, headers);
    }
    try {
      await play(this.#next(request), request, this.#format, this.#newId, response);
    } catch (error) {
      // A script that JSON cannot say, such as a bigint, must not leave the client waiting.
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, this.#format.errorBody(500, messageOf(error)));
    }
  }

  #next(request: TwinRequest): Scripted {
    const queued = this.#queue.shift();
    if (queued !== undefined) return queued;
    const scripted = this.#otherwise(request);
    checkScripts([scripted]);
    return scripted;
  }

  /** `null`: the client left before it had said everything. */
  async #read(incoming: IncomingMessage): Promise<ReceivedRequest | null> {
    const { method = "", url: path = "" } = incoming;
    const request: TwinRequest = { method, path, headers: headersOf(incoming), body: undefined };
    const read = await this.#reader.read(incoming).catch((error: unknown) => ({ problem: messageOf(error) }));
    if (read === null) return this.#note(request, 0, this.#refuse(413, "body_too_large", tooLarge));
    if ("problem" in read) {
      if (!incoming.complete) return null;
      return this.#note(request, 0, this.#refuse(400, "not_utf8", notJson(read.problem)));
    }
    return this.#judge({ ...request, body: read.text }, read);
  }

  /** The size is what was counted, whatever the client said of it. */
  #judge(request: TwinRequest, { text, bytes }: Body): ReceivedRequest {
    const counted = { ...request, headers: { ...request.headers, "content-length": String(bytes) } };
    if (!this.#format.serves(request)) {
      return this.#note(counted, bytes, this.#refuse(404, "not_served", "Not Found"));
    }
    const parsed = parse(text);
    if ("problem" in parsed) {
      return this.#note(counted, bytes, this.#refuse(400, "not_json", notJson(parsed.problem)));
    }
    const whole = { ...counted, body: parsed.body };
    return this.#note(whole, bytes, this.#format.check(whole, this.#limits));
  }

  #note(request: TwinRequest, bytes: number, refusal: Refusal | null): ReceivedRequest {
    const received = { ...request, refusal };
    this.log.add(received, bytes);
    return received;
  }

  #refuse(status: number, rule: string, message: string): Refusal {
    return { status, rule, body: this.#format.errorBody(status, message) };
  }
}

const tooLarge = "Request exceeds the maximum size";

function notJson(problem: string): string {
  return `The request body is not valid JSON: ${problem}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string | undefined>> {
  const texts = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(", ") : value,
  ]);
  return Object.fromEntries(texts);
}

function parse(text: string): { readonly body: unknown } | { readonly problem: string } {
  try {
    return { body: JSON.parse(text) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
