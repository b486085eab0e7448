import type { IncomingMessage, RequestListener } from "node:http";
import { Refused } from "../../calls/dispatch.ts";
import type { Ground } from "../door/ground.ts";
import { noSuch, stopping } from "../door/refusals.ts";
import { events } from "./events-stream.ts";
import { Exchange } from "./exchange.ts";
import { inbound, mcp } from "./guests.ts";
import { link } from "./link.ts";
import { healthz, metrics, openApi, readyz, root } from "./places.ts";
import { rpc } from "./rpc.ts";

/**
 * The routes of the gateway. There is no HTTP framework: bodies, limits, streams and upgrades need code of our own in any case, a
 * framework would only match eleven paths, and Fastify with schemas took 360 ms and 35 packages to do it.
 */

interface Route {
  readonly methods: readonly string[];
  /** `:name` stands for any segment. */
  readonly path: string;
  handle(exchange: Exchange): Promise<void>;
  /** The request waits for events, so a graceful shutdown aborts it at once. */
  readonly isLongPoll?: true;
  /** Also answered during a graceful shutdown. */
  readonly isAlwaysOpen?: true;
  /** The handler reads the body. The body of any other request is discarded as it arrives. */
  readonly hasBody?: true;
}

function routesOf(ground: Ground, url: () => string): readonly Route[] {
  return [
    { methods: ["POST"], path: "/rpc/:name", handle: rpc, hasBody: true },
    { methods: ["GET"], path: "/events", handle: events, isLongPoll: true },
    { methods: ["GET"], path: "/openapi.json", handle: openApi(ground) },
    { methods: ["GET"], path: "/healthz", handle: healthz, isAlwaysOpen: true },
    { methods: ["GET"], path: "/readyz", handle: readyz },
    { methods: ["GET"], path: "/metrics", handle: metrics },
    // The channel answers methods other than POST, as it does in a server of the user's own.
    {
      methods: ["POST", "GET", "PUT", "PATCH", "DELETE"],
      path: "/channels/:name/inbound",
      handle: inbound(url),
      hasBody: true,
    },
    { methods: ["POST"], path: "/link", handle: link, hasBody: true },
    // A GET opens a stream without end; the other methods end.
    { methods: ["GET"], path: "/mcp", handle: mcp(url), isLongPoll: true },
    { methods: ["POST", "DELETE"], path: "/mcp", handle: mcp(url), hasBody: true },
    { methods: ["GET"], path: "/", handle: root },
  ];
}

const notFound: Route = {
  methods: [],
  path: "",
  handle: async ({ request }) => {
    throw new Refused(noSuch(`${request.method} ${pathOf(request).slice(0, 200)} here`));
  },
};

/** Answers every request that passed the checks of `Host` and `Origin`. */
export function createRouter(ground: Ground, url: () => string): RequestListener {
  const routes = routesOf(ground, url).map((route) => ({ route, segments: route.path.split("/") }));
  return (request, response) => {
    const segments = readSegments(pathOf(request));
    const found = routes.find(
      (each) => each.route.methods.includes(request.method ?? "") && isMatch(each.segments, segments),
    );
    const route = found?.route ?? notFound;
    // Unread chunks stay in the stream, one object each, until the response is sent.
    if (route.hasBody !== true) request.resume();
    const name = segments[found?.segments.indexOf(":name") ?? -1] ?? request.url ?? "";
    const exchange = new Exchange(ground, request, response, { name, isLong: route.isLongPoll === true });
    handle(exchange, route).catch((error: unknown) => exchange.fail(error));
  };
}

async function handle(exchange: Exchange, route: Route): Promise<void> {
  if (exchange.ground.underway.isStopping && route.isAlwaysOpen !== true) throw new Refused(stopping);
  await route.handle(exchange);
}

function pathOf({ url = "" }: IncomingMessage): string {
  return url.split(/[?#]/, 1)[0] ?? "";
}

/** Decoded one by one, so that an encoded slash stays inside its segment; none when the encoding is malformed. */
function readSegments(path: string): readonly string[] {
  try {
    return path.split("/").map((segment) => (segment.includes("%") ? decodeURIComponent(segment) : segment));
  } catch {
    return [];
  }
}

/** Longer than any method or channel name. */
const maxNameLength = 256;

function isMatch(pattern: readonly string[], segments: readonly string[]): boolean {
  if (pattern.length !== segments.length) return false;
  return pattern.every((each, index) => {
    const segment = segments[index] as string;
    return each === ":name" ? segment.length <= maxNameLength : each === segment;
  });
}
