import type { IncomingMessage, RequestListener } from "node:http";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { checkParams } from "../../protocol/check-params.ts";
import { invalidRequest } from "../../protocol/errors.ts";
import { isLongCall } from "../../protocol/method-table.ts";
import { openApiDocument } from "../../protocol/openapi.ts";
import type { LinkedPayload } from "../../protocol/tokens.ts";
import { LinkSchema } from "../../protocol/tokens.ts";
import type { Principal } from "../auth/principal.ts";
import { everyUser, isAdmin, mayCall } from "../auth/principal.ts";
import type { NewToken } from "../auth/tokens.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import { ConsoleFiles, serveAsset, servePage } from "./console-files.ts";
import { events } from "./event-stream.ts";
import { apiHeaders, HttpExchange } from "./exchange.ts";
import { jsonText, noSuch, notForClients, shuttingDown, wrongCode } from "./refusals.ts";
import { jsonBody } from "./request-body.ts";
import type { ServerContext } from "./server-context.ts";
import { inbound, mcp } from "./web-bridge.ts";

/**
 * The gateway's routes. There is no HTTP framework. Bodies, limits, streams and upgrades need custom code in any case,
 * so a framework would do little more than match a dozen routes. When measured, Fastify with schemas added 35 packages
 * and 360 ms of startup time.
 */

interface Route {
  readonly methods: readonly string[];
  /** `:name` matches any segment. */
  readonly path: string;
  handle(exchange: HttpExchange): Promise<void>;
  /** `true` if the request waits for events, in which case a graceful shutdown aborts it immediately. */
  readonly isLongPoll?: true;
  /** `true` if the route also responds during a graceful shutdown. */
  readonly isAlwaysOpen?: true;
  /** `true` if the route also responds in a process that serves no clients. */
  readonly isForOperators?: true;
  /** `true` if the handler reads the body. Any other request's body is discarded as it arrives. */
  readonly hasBody?: true;
}

function routesOf(context: ServerContext, url: () => string): readonly Route[] {
  const { consoleFolder } = context.app.settings;
  const files = consoleFolder === null ? null : new ConsoleFiles(consoleFolder);
  return [
    { methods: ["POST"], path: "/rpc/:name", handle: rpc, hasBody: true },
    { methods: ["GET"], path: "/events", handle: events, isLongPoll: true },
    { methods: ["GET"], path: "/openapi.json", handle: openApi(context) },
    { methods: ["GET"], path: "/healthz", handle: healthz, isAlwaysOpen: true, isForOperators: true },
    { methods: ["GET"], path: "/readyz", handle: readyz, isForOperators: true },
    { methods: ["GET"], path: "/metrics", handle: metrics, isForOperators: true },
    // The channel itself responds to methods other than POST, just as it does when mounted in a user's own server.
    {
      methods: ["POST", "GET", "PUT", "PATCH", "DELETE"],
      path: "/channels/:name/inbound",
      handle: inbound(url),
      hasBody: true,
    },
    { methods: ["POST"], path: "/link", handle: link, hasBody: true },
    // A GET opens a stream that does not end. Requests with other methods complete.
    { methods: ["GET"], path: "/mcp", handle: mcp(url), isLongPoll: true },
    { methods: ["POST", "DELETE"], path: "/mcp", handle: mcp(url), hasBody: true },
    { methods: ["GET"], path: "/", handle: servePage(files, welcome) },
    { methods: ["GET"], path: "/assets/:name", handle: serveAsset(files) },
  ];
}

const notFound: Route = {
  methods: [],
  path: "",
  handle: async ({ request }) => {
    throw new RequestRefusedError(noSuch(`${request.method} ${pathOf(request).slice(0, 200)} here`));
  },
};

const noClients: Route = {
  methods: [],
  path: "",
  handle: async () => {
    throw new RequestRefusedError(notForClients);
  },
};

/**
 * Redirects the base path without a trailing slash, because a page served there could not load files from relative
 * URLs.
 */
const addSlash: Route = {
  methods: [],
  path: "",
  handle: async ({ request, response, context }) => {
    const { basePath } = context.app.settings;
    const url = originalUrlOf(request);
    // The URL is relative because the gateway does not know its public address.
    const location = `./${basePath.slice(basePath.lastIndexOf("/") + 1)}/${url.slice(basePath.length)}`;
    response.writeHead(308, { ...apiHeaders, location }).end();
  },
};

/** Routes every request that has passed the `Host` and `Origin` checks. */
export function createRouter(context: ServerContext, url: () => string): RequestListener {
  const routes = routesOf(context, url).map((route) => ({ route, segments: route.path.split("/") }));
  const { basePath, servesClients } = context.app.settings;
  return (request, response) => {
    const path = servedPath(request, basePath);
    const segments = readSegments(path);
    const found = routes.find(
      (each) => each.route.methods.includes(request.method ?? "") && isMatch(each.segments, segments),
    );
    const matched = found?.route ?? (path === "" ? addSlash : notFound);
    const route = servesClients || matched.isForOperators === true ? matched : noClients;
    // Otherwise, each unread chunk would stay in the stream as a separate object until the response has been sent.
    if (route.hasBody !== true) request.resume();
    const name = segments[found?.segments.indexOf(":name") ?? -1] ?? request.url ?? "";
    const exchange = new HttpExchange(context, request, response, {
      name,
      isLong: route.isLongPoll === true,
    });
    handle(exchange, route).catch((error: unknown) => exchange.fail(error));
  };
}

async function handle(exchange: HttpExchange, route: Route): Promise<void> {
  if (exchange.context.pendingRequests.isStopping && route.isAlwaysOpen !== true)
    throw new RequestRefusedError(shuttingDown);
  await route.handle(exchange);
}

/**
 * Returns a request's path without `gateway.basePath`. Paths outside the base path are also served because a proxy
 * might have removed the prefix.
 */
export function servedPath(request: IncomingMessage, basePath: string): string {
  // Express replaces the URL of its mount path with "/", whether it had a trailing slash or not.
  if (pathOf({ url: originalUrlOf(request) }) === basePath) return "";
  const path = pathOf(request);
  return path === basePath || path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path;
}

/** Returns the URL before a server such as Express removed the path under which the gateway is mounted. */
function originalUrlOf(request: IncomingMessage & { readonly originalUrl?: unknown }): string {
  const { url = "", originalUrl = url } = request;
  return typeof originalUrl === "string" ? originalUrl : url;
}

function pathOf({ url = "" }: Pick<IncomingMessage, "url">): string {
  return url.split(/[?#]/, 1)[0] ?? "";
}

/**
 * Decodes each segment separately so that an encoded slash stays within its segment. Returns no segments if the
 * encoding is malformed.
 */
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

/** `POST /rpc/<method>`: the body is the params, and the response is the result. */
export async function rpc(exchange: HttpExchange): Promise<void> {
  const { context, request, name, signal } = exchange;
  const principal = await exchange.enter();
  const reserve = exchange.holdBytes(context.bodies, principal.tokenId);
  const { frameBytes: maxBytes, bodyChunks: maxChunks } = context.tuning;
  const params = await jsonBody(request, { maxBytes, maxChunks, reserve });
  await exchange.recheck();
  if (isLongCall(name, params)) exchange.task.wait();
  const payload = await context.app.dispatch.invoke(principal, name, params, signal);
  exchange.send({ text: jsonText(payload) });
}

const limits = { maxBytes: 4096, maxChunks: 64 };

/** `POST /link`: exchanges a link code for a token. Responses to wrong codes are delayed like those to wrong tokens. */
export async function link(exchange: HttpExchange): Promise<void> {
  const { context, request } = exchange;
  const checked = checkParams(LinkSchema, await jsonBody(request, limits));
  if ("problems" in checked) throw new RequestRefusedError(invalidRequest(checked.problems));
  const made = await context.app.exchange(checked.params.code);
  if (made === null)
    throw new RequestRefusedError(
      await context.authenticator.wrong(context.authenticator.addressOf(request), wrongCode),
    );
  exchange.send({ text: JSON.stringify(linkedPayload(made)) });
}

function linkedPayload({ secret, token }: NewToken): LinkedPayload {
  const { tokenId, scopes, user, expiresAt } = token;
  const allUsers = user === everyUser;
  return {
    token: secret,
    tokenId,
    scopes: [...scopes],
    allUsers,
    ...present({ userId: allUsers ? null : user, expiresAt }),
  };
}

/** The text served at `/` by a gateway without the console. */
const welcome = [
  "This is a Skein gateway: AI agent sessions for programs, people and agents.",
  "",
  "  skein chat              talk with an agent",
  "  skein sessions ls       list the sessions",
  "  skein token create      create a token for a program",
  "",
  "Programs send Authorization: Bearer <token> to /rpc/<method> and /ws. See /openapi.json for a description of every method.",
  "MCP is available at /mcp. The code after # in the printed link can be exchanged once for a token: POST /link.",
  "",
].join("\n");

/** Reports only that the process is alive. */
export async function healthz(exchange: HttpExchange): Promise<void> {
  exchange.send({ text: '{"status":"ok"}' });
}

/**
 * Reports readiness as 200 or 503, for load balancers without a token. Only an admin sees the reasons, because they can
 * contain file names.
 */
export async function readyz(exchange: HttpExchange): Promise<void> {
  const { app } = exchange.context;
  const hasToken = exchange.request.headers.authorization !== undefined;
  const principal = hasToken ? await exchange.enter().catch((error) => lastKnown(exchange, error)) : null;
  const problems = await app.problems();
  const isReady = problems.length === 0;
  const seesAll = principal !== null && isAdmin(principal);
  const body = { status: isReady ? "ready" : "not_ready", ...(seesAll && !isReady ? { problems } : {}) };
  const headers = isReady ? apiHeaders : { ...apiHeaders, "retry-after": "1" };
  exchange.send({ status: isReady ? 200 : 503, headers, text: JSON.stringify(body) });
}

/** While the database cannot be read, the last successful read of the tokens determines who is an admin. */
function lastKnown({ context, request }: HttpExchange, error: unknown): Principal | null {
  if (error instanceof SkeinError) return context.authenticator.lastKnown(request);
  throw error;
}

/** Metrics cover all users, so they require an admin token for all users. */
export async function metrics(exchange: HttpExchange): Promise<void> {
  const principal = await exchange.enter();
  const may = mayCall(principal, { scope: "admin", needsAll: true });
  if (!may.allowed)
    throw new RequestRefusedError({ code: "forbidden", message: `${may.problem}. ${may.advice}.` });
  const figures = await exchange.context.app.metrics();
  if (figures === null) throw new RequestRefusedError(noSuch("metrics endpoint here"));
  exchange.send({ contentType: figures.contentType, text: figures.body });
}

/** The document does not change while the server is running. */
export function openApi({ app }: ServerContext): (exchange: HttpExchange) => Promise<void> {
  let text: string | null = null;
  return async (exchange) => {
    await exchange.enter();
    text ??= JSON.stringify(openApiDocument({ version: app.version }));
    exchange.send({ text });
  };
}
