import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { GatewayPieces } from "../../src/app/gateway.ts";
import { effectiveConfigText } from "../../src/config/effective.ts";
import type { Call, Handlers, MethodApp } from "../../src/gateway/methods/dispatch.ts";
import type { Server, ServerOptions } from "../../src/gateway/server/server-options.ts";

/** A minimal gateway with a few methods over plain HTTP, for tests of how its parts are connected. */

export interface SmallPieces extends GatewayPieces {
  /** Every Skein instance for which handlers were created, in order. */
  readonly opened: MethodApp[];
  /** Calls to `sessions.usage` wait for this. */
  hold: Promise<void>;
  /** The number of calls that have started. */
  held: number;
  /** The options that the server received. */
  parts: ServerOptions | null;
}

export function smallPieces(more: Partial<GatewayPieces> = {}): SmallPieces {
  const pieces: SmallPieces = {
    opened: [],
    hold: Promise.resolve(),
    held: 0,
    parts: null,
    handlers: (deps) => {
      pieces.opened.push(deps);
      return handlersOf(deps, () => {
        pieces.held++;
        return pieces.hold;
      });
    },
    openHub: ({ subscribe }) => {
      let seq = 0;
      const leave = subscribe(() => void seq++);
      return {
        get seq() {
          return seq;
        },
        size: 0,
        stats: () => ({ subscriptions: 0, sent: 0, dropped: 0, droppedReaders: 0 }),
        announce: () => undefined,
        subscribe: () => ({ seq, close: () => undefined }),
        liveRuns: () => [],
        close: leave,
      };
    },
    openMcp: () => ({ handle: async () => new Response("mcp"), close: async () => undefined }),
    listen: (parts) => {
      pieces.parts = parts;
      return listen(parts);
    },
    ...more,
  };
  return pieces;
}

function handlersOf(deps: MethodApp, hold: () => Promise<void>): Handlers {
  const some = {
    "config.get": async () => ({ problems: [], effective: effectiveConfigText(deps.loaded) }),
    "agents.list": async () => Object.keys(deps.config.agents),
    "chat.send": async ({ sessionKey, message }: { sessionKey: string; message: string }, { userId }: Call) =>
      deps.skein.session({ userId, sessionKey }).accept(message),
    "sessions.usage": async () => {
      await hold();
      const { sessions } = await deps.store.sessions.list({}, { limit: 1 });
      return sessions.length;
    },
    "maintenance.run": async () => ({ mode: "warn", decisions: [], done: [] }),
  };
  return some as unknown as Handlers;
}

/** Serves `POST /rpc/<method>` with a token, and `GET /readyz`. */
export async function listen(parts: ServerOptions): Promise<Server> {
  let isDraining = false;
  const answer = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (isDraining) return Response.json({ code: "unavailable" }, { status: 503 });
    if (pathname === "/readyz") {
      const [problem] = await parts.problems();
      return new Response(problem ?? "ready", { status: problem === undefined ? 200 : 503 });
    }
    if (pathname === "/metrics") return new Response((await parts.metrics())?.body ?? "");
    const principal = await parts.tokens.verify(
      request.headers.get("authorization")?.slice("Bearer ".length),
    );
    if (principal === null) return new Response("", { status: 401 });
    const params: unknown = JSON.parse((await request.text()) || "{}");
    const never = new AbortController().signal;
    return Response.json(
      await parts.dispatch.answer(principal, pathname.slice("/rpc/".length), params, never),
    );
  };
  const server = createServer((request, response) => {
    void (async () => {
      const body = request.method === "POST" ? await new Response(request as never).text() : undefined;
      const headers = { authorization: request.headers.authorization ?? "" };
      const init = { method: request.method ?? "GET", headers, ...(body === undefined ? {} : { body }) };
      const told = await answer(new Request(`http://localhost${request.url}`, init));
      response.writeHead(told.status, { connection: "close" }).end(await told.text());
    })();
  });
  const { host, port } = parts.settings;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, host, resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    drain: async () => {
      isDraining = true;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
