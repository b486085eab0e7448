import { Refused } from "../../calls/dispatch.ts";
import { noSuch } from "../door/refusals.ts";
import { handOn } from "./bridge.ts";
import type { Exchange } from "./exchange.ts";

/** What is answered by other parts, which know requests and answers as the web has them. */

type Act = (exchange: Exchange) => Promise<void>;

/** As much as comes at once. */
const onePiece = 64 * 1024;

/**
 * `POST /channels/<id>/inbound`: signed, so that no token is asked for. Whose signature it is shows only behind the body, so
 * bodies of strangers are held together within one bound; a message of one piece is taken whatever they send.
 */
export function inbound(url: () => string): Act {
  return async (exchange) => {
    const { parts, tuning, unsignedBodies } = exchange.ground;
    const take = parts.webhook(exchange.name);
    if (take === null) throw new Refused(noSuch("such channel"));
    exchange.hold(`channel ${exchange.name}`);
    const reserve = exchange.holdBytes(unsignedBodies, "all", onePiece);
    const { frameBytes: maxBytes, bodyChunks: maxChunks } = tuning;
    await handOn(exchange, url(), { maxBytes, maxChunks, reserve }, take);
  };
}

/** `/mcp`, for requests with a token. It is given a little more than its own limit, so that it answers a longer body in its own words. */
export function mcp(url: () => string): Act {
  return async (exchange) => {
    const principal = await exchange.enter();
    const { parts, tuning, bodies } = exchange.ground;
    const reserve = exchange.holdBytes(bodies, principal.tokenId);
    const { frameBytes, bodyChunks: maxChunks } = tuning;
    const limits = { maxBytes: frameBytes + onePiece, maxChunks, reserve };
    await handOn(exchange, url(), limits, (request) => parts.mcp(request, principal));
  };
}
