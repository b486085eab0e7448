import { Refused } from "../../calls/dispatch.ts";
import { noSuch } from "../door/refusals.ts";
import { sendWeb, webRequest } from "./bridge.ts";
import type { Exchange } from "./exchange.ts";

/** What is answered by other parts, which know requests and answers as the web has them. */

type Act = (exchange: Exchange) => Promise<void>;

/** `POST /channels/<id>/inbound`: signed, so that no token is asked for. */
export function inbound(url: () => string): Act {
  return async (exchange) => {
    const { parts, tuning } = exchange.ground;
    const take = parts.webhook(exchange.name);
    if (take === null) throw new Refused(noSuch("such channel"));
    exchange.hold(`channel ${exchange.name}`);
    await sendWeb(exchange, await take(webRequest(exchange, url(), tuning.frameBytes)));
  };
}

/** As much as comes at once. */
const onePiece = 64 * 1024;

/** `/mcp`, for whoever shows a token. It bounds bodies itself, and is let see the piece that is too much, so that it can say so. */
export function mcp(url: () => string): Act {
  return async (exchange) => {
    const principal = await exchange.enter();
    const { parts, tuning } = exchange.ground;
    const request = webRequest(exchange, url(), tuning.frameBytes + onePiece);
    await sendWeb(exchange, await parts.mcp(request, principal));
  };
}
