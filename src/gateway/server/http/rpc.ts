import { Refused } from "../../calls/dispatch.ts";
import { tooLarge } from "../door/refusals.ts";
import { jsonBody } from "./bodies.ts";
import type { Exchange } from "./exchange.ts";

/** `POST /rpc/<method>`: the params as they are, and the payload as it is. */
export async function rpc(exchange: Exchange): Promise<void> {
  const { ground, request, name, signal } = exchange;
  const principal = await exchange.enter();
  const params = await jsonBody(request, ground.tuning.frameBytes);
  const payload = await ground.parts.dispatch.invoke(principal, name, params, signal);
  exchange.send({ text: textOf(payload) });
}

/** A payload as JSON. One that is longer than a text can be was asked for by mistake. */
export function textOf(payload: unknown): string {
  try {
    return JSON.stringify(payload) ?? "null";
  } catch (error) {
    if (error instanceof RangeError) throw new Refused(tooLarge("The answer", 2 ** 29));
    throw error;
  }
}
