import type { IncomingMessage, ServerResponse } from "node:http";
import type { WireError } from "../../protocol/errors.ts";
import type { Principal } from "../auth/principal.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import type { ByteBudget } from "./rate-limits.ts";
import { errorHeaders, rateLimited, statusOf, wrongToken } from "./refusals.ts";
import type { PendingRequest, ServerContext } from "./server-context.ts";

/** The headers that go with every answer of its kind. Nothing here allows another origin anything: there is no CORS. */

export type FixedHeaders = Readonly<Record<string, string>>;

/** No script but the files that we serve; no frames, forms or plug-ins. Images of sessions are `blob:` or `data:`. */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "object-src 'none'",
].join("; ");

/** For what is no page, whatever a browser takes it for. */
const dataPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

const everywhere: FixedHeaders = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

/** The pages of the console: asked for again each time, so that a new version is seen. */
export const pageHeaders: FixedHeaders = {
  ...everywhere,
  "content-security-policy": pagePolicy,
  "cache-control": "no-cache",
};

/** Files of the console whose name has the hash of what is in them. */
export const assetHeaders: FixedHeaders = {
  ...everywhere,
  "content-security-policy": pagePolicy,
  "cache-control": "public, max-age=31536000, immutable",
};

/** Answers of methods, and refusals. */
export const apiHeaders: FixedHeaders = {
  ...everywhere,
  "content-security-policy": dataPolicy,
  "cache-control": "no-store",
};

/** Blobs and exports: bytes that somebody else wrote. They are saved, never shown as a page of ours. */
export const downloadHeaders: FixedHeaders = { ...apiHeaders, "content-disposition": "attachment" };

/** A request and its answer, with who asks once that is known. */
export class HttpExchange {
  readonly context: ServerContext;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Of the path. */
  readonly name: string;
  readonly task: PendingRequest;
  principal: Principal | null = null;
  readonly #ends: (() => void)[] = [];

  constructor(
    context: ServerContext,
    request: IncomingMessage,
    response: ServerResponse,
    way: { readonly name: string; readonly isLong: boolean },
  ) {
    this.context = context;
    this.request = request;
    this.response = response;
    this.name = way.name;
    this.task = context.pendingRequests.begin(way.isLong);
    response.once("close", () => this.#close());
    // What breaks while an answer is written is its client's loss, never the process's.
    response.on("error", (error) => context.app.log("info", "An answer broke off", { error: error.message }));
  }

  get signal(): AbortSignal {
    return this.task.signal;
  }

  get rules(): ResponseRules {
    const { pendingRequests, tuning } = this.context;
    return { isLast: pendingRequests.isStopping, stalledMs: tuning.stalledMs };
  }

  /** Whoever shows a token, and has not too much under way. */
  async enter(): Promise<Principal> {
    const principal = await this.context.authenticator.enter(this.request);
    this.principal = principal;
    this.hold(principal.tokenId);
    this.atEnd(this.context.requestsByToken.add(principal, () => this.#revoke()));
    return principal;
  }

  /** One request more in this name, until it is answered. */
  hold(name: string): void {
    const release = this.context.requests.open(name);
    if (release === null)
      throw new RequestRefusedError(rateLimited("Too many requests are under way at once", 1000));
    this.#ends.push(release);
  }

  /**
   * Counts the bytes of its body under a name, until it is answered; what it returns throws where they are too many. The first
   * `free` of them are not counted.
   */
  holdBytes(held: ByteBudget, name: string, free = 0): (bytes: number) => void {
    let [length, taken] = [0, 0];
    this.atEnd(() => held.give(name, taken));
    return (bytes) => {
      length += bytes;
      const more = Math.max(0, length - free) - taken;
      if (this.response.closed || more === 0) return;
      if (!held.take(name, more)) {
        throw new RequestRefusedError(rateLimited("Too many bytes of requests are under way at once", 1000));
      }
      taken += more;
    };
  }

  /** Called when the client is gone or has its answer. */
  atEnd(act: () => void): void {
    if (this.response.closed) act();
    else this.#ends.push(act);
  }

  send(answer: ResponseText): void {
    sendText(this.response, answer, this.rules);
  }

  /** What was thrown, as this client may see it. Behind the beginning of an answer nothing can be told any more. */
  fail(error: unknown): void {
    if (this.response.writableEnded) return;
    const wire = this.context.app.dispatch.refusal(this.principal, this.name, error, this.signal);
    if (this.response.headersSent) this.response.destroy();
    else {
      const endsConnection = error instanceof RequestRefusedError && error.endsConnection;
      sendError(this.response, wire, { ...this.rules, isLast: this.rules.isLast || endsConnection });
    }
  }

  /** Its token has ended meanwhile: nothing more is told, and nobody waits for the rest. */
  #revoke(): void {
    if (!this.response.headersSent) sendError(this.response, wrongToken, this.rules);
    this.task.leave();
  }

  #close(): void {
    // Behind a finished answer it is of no account.
    if (!this.response.writableFinished) this.task.leave();
    try {
      for (const end of this.#ends.splice(0)) this.#end(end);
    } finally {
      this.task.done();
    }
  }

  /** One that fails keeps no other from its end. */
  #end(end: () => void): void {
    try {
      end();
    } catch (error) {
      this.context.app.log("error", "What was held for a request could not be let go", { error });
    }
  }
}

/** How answers are written. A text is made once, and goes out with its length. */

export const jsonType = "application/json; charset=utf-8";

export interface ResponseText {
  readonly status?: number;
  readonly contentType?: string;
  readonly headers?: FixedHeaders;
  readonly text: string;
}

const apiList = listOf(apiHeaders);
const fewBytes = 64 * 1024;

export interface ResponseRules {
  /** The connection is not to be used again. */
  readonly isLast: boolean;
  readonly stalledMs: number;
}

export function sendText(response: ServerResponse, answer: ResponseText, rules: ResponseRules): void {
  if (response.headersSent || response.destroyed) return;
  const { status = 200, contentType = jsonType, headers, text } = answer;
  const length = Buffer.byteLength(text);
  const fixed = headers === undefined ? apiList : listOf(headers);
  const last = rules.isLast ? ["connection", "close"] : [];
  response.writeHead(status, [
    ...fixed,
    "content-type",
    contentType,
    "content-length",
    String(length),
    ...last,
  ]);
  if (length > fewBytes) destroyOnStall(response, rules.stalledMs);
  // What has a byte for each character is written without being encoded.
  response.end(text, length === text.length ? "latin1" : "utf8");
}

export function sendError(response: ServerResponse, error: WireError, rules: ResponseRules): void {
  const headers = { ...apiHeaders, ...errorHeaders(error) };
  sendText(response, { status: statusOf(error), headers, text: JSON.stringify({ error }) }, rules);
}

/** A client that reads nothing of a long answer would have it held for good. */
export function destroyOnStall(response: ServerResponse, stalledMs: number): void {
  response.setTimeout(stalledMs, () => response.destroy());
}

function listOf(headers: FixedHeaders): string[] {
  return Object.entries(headers).flat();
}
