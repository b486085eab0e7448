import { isLongCall } from "../../../protocol/methods/method-table.ts";
import { jsonText } from "../door/json-text.ts";
import { jsonBody } from "./bodies.ts";
import type { Exchange } from "./exchange.ts";

/** `POST /rpc/<method>`: the params as they are, and the payload as it is. */
export async function rpc(exchange: Exchange): Promise<void> {
  const { ground, request, name, signal } = exchange;
  const principal = await exchange.enter();
  const reserve = exchange.holdBytes(ground.bodies, principal.tokenId);
  const { frameBytes: maxBytes, bodyChunks: maxChunks } = ground.tuning;
  const params = await jsonBody(request, { maxBytes, maxChunks, reserve });
  if (isLongCall(name, params)) exchange.task.wait();
  const payload = await ground.parts.dispatch.invoke(principal, name, params, signal);
  exchange.send({ text: jsonText(payload) });
}
