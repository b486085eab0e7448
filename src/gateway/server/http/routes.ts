import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refused } from "../../calls/dispatch.ts";
import type { Ground } from "../door/ground.ts";
import { noSuch, notJsonType, stopping } from "../door/refusals.ts";
import { events } from "./events-stream.ts";
import { Exchange } from "./exchange.ts";
import { inbound, mcp } from "./guests.ts";
import { link } from "./link.ts";
import { healthz, metrics, openApi, readyz, root } from "./places.ts";
import { rpc } from "./rpc.ts";

interface Route {
  readonly method: string | string[];
  readonly path: string;
  act(exchange: Exchange): Promise<void>;
  /** It does nothing but wait, from the beginning. */
  readonly isLong?: true;
  /** Answered by a server that stops, too. */
  readonly isAlways?: true;
  /** It reads the body. The body of any other request is dropped as it arrives. */
  readonly hasBody?: true;
  /** It looks at the type of its body itself: Fastify need not. */
  readonly isTyped?: true;
}

function routesOf(ground: Ground, url: () => string): Route[] {
  return [
    { method: "POST", path: "/rpc/:name", act: rpc, hasBody: true, isTyped: true },
    { method: "GET", path: "/events", act: events, isLong: true },
    { method: "GET", path: "/openapi.json", act: openApi(ground) },
    { method: "GET", path: "/healthz", act: healthz, isAlways: true },
    { method: "GET", path: "/readyz", act: readyz },
    { method: "GET", path: "/metrics", act: metrics },
    // The channel itself answers other methods, as it does where a server of the user's own mounts it.
    {
      method: ["POST", "GET", "PUT", "PATCH", "DELETE"],
      path: "/channels/:name/inbound",
      act: inbound(url),
      hasBody: true,
    },
    { method: "POST", path: "/link", act: link, hasBody: true },
    // Its streams have no end; its calls have one.
    { method: "GET", path: "/mcp", act: mcp(url), isLong: true },
    { method: ["POST", "DELETE"], path: "/mcp", act: mcp(url), hasBody: true },
    { method: "GET", path: "/", act: root },
  ];
}

/** Every path there is. Fastify finds the way; bodies and answers are ours, so that nothing is read or written twice. */
export function addRoutes(app: FastifyInstance, ground: Ground, url: () => string): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  for (const route of routesOf(ground, url)) {
    const handler = handlerOf(ground, route);
    // Once it is hijacked, nothing comes behind the hook.
    const early = route.isTyped === true ? { onRequest: handler } : {};
    app.route({ method: route.method, url: route.path, handler, ...early });
  }
  app.setNotFoundHandler(handlerOf(ground, unknown));
  // A content type that is none at all: whoever reads the body says so.
  app.setErrorHandler((_error, request, reply) => handlerOf(ground, unreadable)(request, reply));
}

const unknown: Route = {
  method: [],
  path: "",
  act: async ({ request }) => {
    const [path = ""] = (request.url ?? "").split("?");
    throw new Refused(noSuch(`${request.method} ${path.slice(0, 200)} here`));
  },
};

const unreadable: Route = {
  method: [],
  path: "",
  act: async () => {
    throw new Refused(notJsonType);
  },
};

function handlerOf(ground: Ground, route: Route): (request: FastifyRequest, reply: FastifyReply) => void {
  return ({ raw, params }, reply) => {
    reply.hijack();
    // Unread chunks wait in the stream, an object for each, for as long as the answer takes.
    if (route.hasBody !== true) raw.resume();
    const { name = raw.url ?? "" } = (params ?? {}) as { readonly name?: string };
    const exchange = new Exchange(ground, raw, reply.raw, { name, isLong: route.isLong === true });
    run(exchange, route).catch((error: unknown) => exchange.fail(error));
  };
}

async function run(exchange: Exchange, route: Route): Promise<void> {
  if (exchange.ground.underway.isStopping && route.isAlways !== true) throw new Refused(stopping);
  await route.act(exchange);
}
