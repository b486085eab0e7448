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
    const hold = exchange.holdBytes(unsignedBodies, "all", onePiece);
    await handOn(exchange, url(), { most: tuning.frameBytes, hold }, take);
  };
}

/** `/mcp`, for whoever shows a token. It bounds bodies itself, and is let see the piece that is too much, so that it can say so. */
export function mcp(url: () => string): Act {
  return async (exchange) => {
    const principal = await exchange.enter();
    const { parts, tuning, bodies } = exchange.ground;
    const hold = exchange.holdBytes(bodies, principal.tokenId);
    const body = { most: tuning.frameBytes + onePiece, hold };
    await handOn(exchange, url(), body, (request) => parts.mcp(request, principal));
  };
}
