import type { IncomingMessage, ServerResponse } from "node:http";
import type { WireError } from "../../protocol/errors.ts";
import type { Principal } from "../auth/principal.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import type { ByteBudget } from "./rate-limits.ts";
import { errorHeaders, rateLimited, statusOf, wrongToken } from "./refusals.ts";
import type { PendingRequest, ServerContext } from "./server-context.ts";

/** The headers for each kind of response. There are no CORS headers, so other origins have no access. */

export type FixedHeaders = Readonly<Record<string, string>>;

/**
 * Allows scripts, styles and connections only from the gateway itself. Images in sessions use `blob:` or `data:` URLs.
 */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** For responses that are not pages. */
const dataPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

const everywhere: FixedHeaders = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

/** Console pages are revalidated on every load so that a new version appears immediately. */
export const pageHeaders: FixedHeaders = {
  ...everywhere,
  "content-security-policy": pagePolicy,
  "cache-control": "no-cache",
};

/** Console assets whose names contain a content hash. */
export const assetHeaders: FixedHeaders = {
  ...everywhere,
  "content-security-policy": pagePolicy,
  "cache-control": "public, max-age=31536000, immutable",
};

/** Method results and errors. */
export const apiHeaders: FixedHeaders = {
  ...everywhere,
  "content-security-policy": dataPolicy,
  "cache-control": "no-store",
};

/** Blobs and exports are untrusted bytes. Browsers save them and never render them. */
export const downloadHeaders: FixedHeaders = { ...apiHeaders, "content-disposition": "attachment" };

/** One HTTP request, its response, and its principal once it is authenticated. */
export class HttpExchange {
  readonly context: ServerContext;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The variable segment of the path, such as the method in `/rpc/<method>`. */
  readonly name: string;
  readonly task: PendingRequest;
  principal: Principal | null = null;
  /** `true` if the whole request had arrived when its token was read. */
  #wasComplete = false;
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
    // A broken connection must not become an uncaught error.
    response.on("error", (error) =>
      context.app.log("info", "The connection failed while a response was being sent", {
        error: error.message,
      }),
    );
  }

  get signal(): AbortSignal {
    return this.task.signal;
  }

  get rules(): ResponseRules {
    const { pendingRequests, tuning } = this.context;
    return { isLast: pendingRequests.isStopping, stalledMs: tuning.stalledMs };
  }

  /** Authenticates the request and counts it as one of the token's concurrent requests. */
  async enter(): Promise<Principal> {
    const principal = await this.context.authenticator.enter(this.request);
    this.principal = principal;
    this.#wasComplete = this.request.complete;
    this.hold(principal.tokenId);
    this.atEnd(this.context.tokenWatch.add(principal, () => this.#revoke()));
    return principal;
  }

  /**
   * Throws if the token was revoked or has expired since `enter`. Call this once the body has been read, because the
   * client determines how long its body takes to arrive.
   */
  async recheck(): Promise<void> {
    if (this.principal === null || this.#wasComplete) return;
    const principal = await this.context.app.tokens.current(this.principal.tokenId);
    if (principal === null) throw new RequestRefusedError(wrongToken);
  }

  /** Counts one concurrent request under a name until the response has been sent. */
  hold(name: string): void {
    const release = this.context.requests.open(name);
    if (release === null) throw new RequestRefusedError(rateLimited("Too many requests are pending", 1000));
    this.atEnd(release);
  }

  /**
   * Returns a function that charges bytes of the body to a name until the response has been sent. The function throws
   * if the budget is exceeded. The first `free` bytes are not charged.
   */
  holdBytes(held: ByteBudget, name: string, free = 0): (bytes: number) => void {
    let [length, taken] = [0, 0];
    this.atEnd(() => held.give(name, taken));
    return (bytes) => {
      length += bytes;
      const more = Math.max(0, length - free) - taken;
      if (this.response.closed || more === 0) return;
      if (!held.take(name, more)) {
        throw new RequestRefusedError(rateLimited("Pending requests hold too many bytes", 1000));
      }
      taken += more;
    };
  }

  /** Runs `act` once the response has been sent or the client has disconnected. */
  atEnd(act: () => void): void {
    if (this.response.closed) act();
    else this.#ends.push(act);
  }

  send(answer: ResponseContent): void {
    sendContent(this.response, answer, this.rules);
  }

  /**
   * Sends an error in the form that this client is allowed to see. If the headers have already been sent, destroys the
   * connection instead.
   */
  fail(error: unknown): void {
    if (this.response.writableEnded) return;
    const wire = this.context.app.dispatch.refusal(this.principal, this.name, error, this.signal);
    if (this.response.headersSent) this.response.destroy();
    else {
      const endsConnection = error instanceof RequestRefusedError && error.endsConnection;
      sendError(this.response, wire, { ...this.rules, isLast: this.rules.isLast || endsConnection });
    }
  }

  /** Called if the token is revoked while the request is pending. */
  #revoke(): void {
    if (!this.response.headersSent) sendError(this.response, wrongToken, this.rules);
    this.task.leave();
  }

  #close(): void {
    // Once the response is complete, there is nothing to abort.
    if (!this.response.writableFinished) this.task.leave();
    try {
      for (const end of this.#ends.splice(0)) this.#end(end);
    } finally {
      this.task.done();
    }
  }

  /** A cleanup function that throws must not prevent the others from running. */
  #end(end: () => void): void {
    try {
      end();
    } catch (error) {
      this.context.app.log("error", "The cleanup for a request failed", { error });
    }
  }
}

export const jsonType = "application/json; charset=utf-8";

/** Either text or the bytes of a file. */
export type ResponseContent = {
  readonly status?: number;
  readonly contentType?: string;
  readonly headers?: FixedHeaders;
} & ({ readonly text: string } | { readonly body: Buffer });

const apiList = listOf(apiHeaders);
const fewBytes = 64 * 1024;

export interface ResponseRules {
  /** `true` to close the connection after this response. */
  readonly isLast: boolean;
  readonly stalledMs: number;
}

export function sendContent(response: ServerResponse, answer: ResponseContent, rules: ResponseRules): void {
  if (response.headersSent || response.destroyed) return;
  const { status = 200, contentType = jsonType, headers } = answer;
  const length = "text" in answer ? Buffer.byteLength(answer.text) : answer.body.length;
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
  if ("body" in answer) response.end(answer.body);
  // ASCII text is written as Latin-1, which needs no re-encoding.
  else response.end(answer.text, length === answer.text.length ? "latin1" : "utf8");
}

export function sendError(response: ServerResponse, error: WireError, rules: ResponseRules): void {
  const headers = { ...apiHeaders, ...errorHeaders(error) };
  sendContent(response, { status: statusOf(error), headers, text: JSON.stringify({ error }) }, rules);
}

/** Without this, a client that stops reading would keep a long response in memory forever. */
export function destroyOnStall(response: ServerResponse, stalledMs: number): void {
  response.setTimeout(stalledMs, () => response.destroy());
}

function listOf(headers: FixedHeaders): string[] {
  return Object.entries(headers).flat();
}
