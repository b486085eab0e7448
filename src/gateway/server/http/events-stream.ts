import type { ServerResponse } from "node:http";
import { apiHeaders } from "../../auth/headers.ts";
import type { Principal } from "../../auth/principal.ts";
import { checkCall, methodFor, Refused } from "../../calls/dispatch.ts";
import type { SubscribeParams } from "../../contract.ts";
import type { EventSink } from "../../events/contract.ts";
import type { Ground } from "../door/ground.ts";
import { malformed, rateLimited } from "../door/refusals.ts";
import type { Exchange } from "./exchange.ts";

const method = "sessions.subscribe";
const lists = ["keys", "events"];

/** `GET /events`: events as server-sent ones. The data of each is its frame, its id the frame's `seq`. */
export async function events(exchange: Exchange): Promise<void> {
  const { ground, request } = exchange;
  const principal = await exchange.enter();
  const { params, call } = checkCall(methodFor(method, principal), filterOf(request.url ?? ""), principal);
  const after = lastEventId(request.headers["last-event-id"]);
  const wanted = await ground.parts.wanted(params as SubscribeParams, principal, call.userId);
  if (exchange.signal.aborted) throw exchange.signal.reason;
  const release = ground.sockets.open(principal.tokenId);
  if (release === null) throw new Refused(rateLimited("This token has too many sockets and streams", 1000));
  exchange.atEnd(release);
  begin(exchange);
  const sink = sinkOf(exchange.response, ground);
  const subscription = ground.parts.hub.subscribe(principal, wanted, sink, after);
  exchange.atEnd(() => subscription.close());
  keepUp(exchange, principal);
}

/** What the query asks for, as `sessions.subscribe` takes it. */
export function filterOf(url: string): Readonly<Record<string, unknown>> {
  const query = new URL(url, "http://localhost").searchParams;
  const filter: Record<string, unknown> = {};
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name);
    filter[name] = lists.includes(name) ? values : values.length === 1 ? values[0] : values;
  }
  return filter;
}

/** An id that a reader has from us; one that is none would have it miss events without a word. */
export function lastEventId(header: string | readonly string[] | undefined): number | undefined {
  if (header === undefined || header === "") return undefined;
  const id = typeof header === "string" && /^\d{1,15}$/.test(header) ? Number(header) : null;
  if (id === null) throw new Refused(malformed("Last-Event-ID must be the id of an event"));
  return id;
}

function begin({ response, rules }: Exchange): void {
  response.writeHead(200, {
    ...apiHeaders,
    "content-type": "text/event-stream; charset=utf-8",
    // Proxies hold streams back otherwise.
    "x-accel-buffering": "no",
    ...(rules.isLast ? { connection: "close" } : {}),
  });
  response.write(": here\n\n");
}

function sinkOf(response: ServerResponse, { tuning }: Ground): EventSink {
  return {
    send(frame, seq, event) {
      if (response.destroyed || response.writableEnded) return;
      response.write(`id: ${seq}\nevent: ${event}\ndata: ${frame}\n\n`);
      if (response.writableLength > tuning.heldBytes) response.destroy();
    },
    backlog: () => response.writableLength,
    drop: () => void response.destroy(),
  };
}

/** Says that it is there, looks at the token again, and ends with the server. */
function keepUp(exchange: Exchange, principal: Principal): void {
  const { ground, response, signal } = exchange;
  const { timers, streamBeatMs, recheckMs } = ground.tuning;
  const end = () => void response.end();
  exchange.atEnd(timers.every(streamBeatMs, () => void response.write(": still here\n\n")));
  exchange.atEnd(timers.every(recheckMs, () => void (ground.door.isOver(principal) && end())));
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
}
