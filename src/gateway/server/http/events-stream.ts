import type { EventFilter } from "../../../protocol/methods/calls.ts";
import { apiHeaders } from "../../auth/headers.ts";
import { checkCall, methodFor, Refused } from "../../calls/dispatch.ts";
import type { SseSink } from "../../events/sse.ts";
import { lastEventId, sseSink } from "../../events/sse.ts";
import { rateLimited } from "../door/refusals.ts";
import type { Exchange } from "./exchange.ts";

const method = "sessions.subscribe";
const lists = ["keys", "events"];

/** `GET /events`: events as server-sent ones. The data of each is its frame, its id the frame's `seq`. */
export async function events(exchange: Exchange): Promise<void> {
  const { ground, request } = exchange;
  const principal = await exchange.enter();
  const { params, call } = checkCall(methodFor(method, principal), filterOf(request.url ?? ""), principal);
  const after = lastEventId(request.headers["last-event-id"]?.toString());
  const wanted = await ground.parts.wanted(params as EventFilter, principal, call.userId);
  if (exchange.signal.aborted) throw exchange.signal.reason;
  const release = ground.sockets.open(principal.tokenId);
  if (release === null) throw new Refused(rateLimited("This token has too many sockets and streams", 1000));
  exchange.atEnd(release);
  const sink = begin(exchange);
  const subscription = ground.parts.hub.subscribe(principal, wanted, sink, after);
  exchange.atEnd(() => subscription.close());
  // With its token, and with the server.
  exchange.signal.addEventListener("abort", () => sink.end(), { once: true });
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

function begin({ ground, response, rules }: Exchange): SseSink {
  response.writeHead(200, {
    ...apiHeaders,
    "content-type": "text/event-stream; charset=utf-8",
    // Proxies hold streams back otherwise.
    "x-accel-buffering": "no",
    ...(rules.isLast ? { connection: "close" } : {}),
  });
  const { timers, streamBeatMs: beatMs, closeMs } = ground.tuning;
  return sseSink(response, { timers, beatMs, closeMs });
}
