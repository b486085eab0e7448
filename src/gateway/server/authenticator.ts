import type { IncomingMessage } from "node:http";
import type { WireError } from "../../protocol/errors.ts";
import { matchNetworks, resolveClientAddress } from "../auth/addresses.ts";
import { findHostProblem } from "../auth/allowed-hosts.ts";
import type { Principal } from "../auth/principal.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import { FailedAttempts, RequestRateLimiter } from "./rate-limits.ts";
import { noToken, rateLimited, wrongSite, wrongToken } from "./refusals.ts";
import type { ServerOptions, ServerSettings, Tuning } from "./server-options.ts";

/** Authenticates requests, enforces each token's rate limit and slows down clients that send wrong secrets. */
export class Authenticator {
  readonly #app: Pick<ServerOptions, "tokens" | "log">;
  readonly #tuning: Tuning;
  readonly #tries: FailedAttempts;
  readonly #rate: RequestRateLimiter;
  readonly #isTrusted: (address: string) => boolean;

  constructor(app: Pick<ServerOptions, "tokens" | "clock" | "settings" | "log">, tuning: Tuning) {
    this.#app = app;
    this.#tuning = tuning;
    this.#tries = new FailedAttempts({ clock: app.clock });
    this.#rate = new RequestRateLimiter({ clock: app.clock, perSecond: tuning.requestsPerSecond });
    this.#isTrusted = matchNetworks(app.settings.trustProxy);
  }

  /**
   * Returns the principal for a request. Throws if the request is rejected. If the token is wrong, throws after a
   * delay.
   */
  async enter(request: IncomingMessage): Promise<Principal> {
    const secret = bearerOf(request);
    if (secret === null) throw new RequestRefusedError(noToken);
    const principal = await this.known(secret);
    if (principal !== null) return principal;
    // The response might be delayed for seconds. Without this, unread chunks of the body would stay in memory.
    request.resume();
    throw new RequestRefusedError(await this.wrong(this.addressOf(request), wrongToken));
  }

  /**
   * Returns the principal as of the last successful read of the tokens, or `null` if unknown. Use this only to decide
   * who sees error details.
   */
  lastKnown(request: IncomingMessage): Principal | null {
    return this.#app.tokens.verifyLastRead(bearerOf(request));
  }

  /** Returns the principal for a secret and counts one request. Returns `null` if the secret is wrong. */
  async known(secret: unknown): Promise<Principal | null> {
    const principal = await this.#app.tokens.verify(secret);
    if (principal !== null) this.take(principal);
    return principal;
  }

  /** Counts one request for this token. Throws if the token exceeds its rate limit. */
  take({ tokenId }: Principal): void {
    const retryAfterMs = this.#rate.take(tokenId);
    if (retryAfterMs === 0) return;
    const most = this.#tuning.requestsPerSecond;
    throw new RequestRefusedError(
      rateLimited(`A token can send ${most} requests per second, and this one has sent more`, retryAfterMs),
    );
  }

  /** Returns tokens that were revoked or have expired. While the database cannot be read, all are still accepted. */
  async findEnded(tokenIds: readonly string[]): Promise<ReadonlySet<string>> {
    try {
      return await this.#app.tokens.findEnded(tokenIds);
    } catch (error) {
      this.#app.log("warn", "Tokens could not be rechecked", { tokenIds, error });
      return new Set();
    }
  }

  /** Resolves to the error for a wrong secret after its delay, even if the client disconnects. */
  async wrong(address: string, refusal: WireError): Promise<WireError> {
    const { holdMs, retryAfterMs, done } = this.#tries.failed(address);
    if (retryAfterMs !== null)
      return rateLimited("There were too many invalid tokens and codes", retryAfterMs);
    if (holdMs > 0) await new Promise<void>((go) => this.#tuning.timers.after(holdMs, go));
    done();
    return refusal;
  }

  addressOf(request: IncomingMessage): string {
    const forwarded = valuesOf(request.rawHeaders, "x-forwarded-for");
    return resolveClientAddress(request.socket.remoteAddress ?? "", forwarded, this.#isTrusted);
  }
}

/**
 * Returns the bearer token in a request, or `null` if there is none. A token in the URL is ignored, because URLs end up
 * in logs.
 */
function bearerOf({ headers }: IncomingMessage): string | null {
  const { authorization } = headers;
  if (authorization === undefined) return null;
  return /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? "";
}

/**
 * Returns the reason why a request's `Host` or `Origin` is not allowed, or `null` if both are allowed. Checked before
 * anything else.
 */
export function findHostRefusal(
  request: IncomingMessage,
  { host, allowedHosts }: ServerSettings,
  port: number,
): WireError | null {
  const { url = "", rawHeaders, socket } = request;
  const problem = findHostProblem(
    {
      target: url,
      host: valuesOf(rawHeaders, "host"),
      origin: valuesOf(rawHeaders, "origin"),
      fetchSite: valuesOf(rawHeaders, "sec-fetch-site"),
      fetchMode: valuesOf(rawHeaders, "sec-fetch-mode"),
    },
    { port, bound: [host, socket.localAddress ?? host], allowedHosts },
  );
  return problem === null ? null : wrongSite(problem);
}

/** Returns every value of a header. Node drops repeated values from `headers`. */
export function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] | undefined {
  const values: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const header = rawHeaders[index] as string;
    if (header.length === name.length && header.toLowerCase() === name)
      values.push(rawHeaders[index + 1] as string);
  }
  return values.length === 0 ? undefined : values;
}
