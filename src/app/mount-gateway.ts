import { randomUUID } from "node:crypto";
import manifest from "../../package.json" with { type: "json" };
import type { EventBus } from "../core/events.ts";
import { thrownText } from "../core/text.ts";
import { ensureAdminToken } from "../gateway/auth/admin-token.ts";
import { exchangeLinkCode } from "../gateway/auth/link-codes.ts";
import { Tokens } from "../gateway/auth/tokens.ts";
import { Dispatch } from "../gateway/methods/dispatch.ts";
import { mountServer } from "../gateway/server/create-server.ts";
import type { ServerApp } from "../gateway/server/server-options.ts";
import type { App, MountedGateway, MountOptions } from "../sessions/app.ts";
import { Skein } from "../sessions/skein.ts";
import { skeinDeps } from "./call-deps.ts";
import { gatewayPieces } from "./gateway-pieces.ts";

/** What of a gateway may still be under way when it is closed. */
const graceMs = 2000;

/** Opens a gateway for a server of the user's own. Its tokens are those of the folder, in the file `token` of `root`. */
export async function mountGateway(
  app: App,
  root: string,
  { allowedHosts = [] }: MountOptions,
): Promise<MountedGateway> {
  const { clock, config, store, bus } = app;
  const deps = skeinDeps(new Skein(app), app.loaded, app);
  const log: ServerApp["log"] = (level, message, fields) => app.log.write(level, message, fields);
  const report = (error: unknown) => log("error", thrownText(error));
  const tokens = new Tokens({ ledger: store.work.ledger, clock, keepsRevocations: true });
  ensureAdminToken(root, tokens);
  const serving = { ...deps, tokens };
  const handlers = gatewayPieces.handlers(serving);
  const dispatch = new Dispatch({
    handlers: () => handlers,
    newErrorId: randomUUID,
    report: (errorId, method, error) =>
      log("error", `${method} failed: ${thrownText(error)}`, { errorId, error }),
  });
  const parts = {
    tokens,
    clock,
    subscribe: (listener: Parameters<EventBus["subscribe"]>[0]) => bus.subscribe(listener),
    deps: () => serving,
    redactor: () => deps.redactor,
    report,
  };
  const { version } = manifest;
  const hub = gatewayPieces.openHub(parts);
  const mcp = gatewayPieces.openMcp({
    ...parts,
    version,
    heavy: dispatch.heavy,
    acquire: () => ({ deps: serving, [Symbol.dispose]: () => undefined }),
  });
  const { host, port, trustProxy } = config.gateway;
  const server = await mountServer({
    version,
    settings: {
      host,
      port,
      isExposed: true,
      allowedHosts: [...config.gateway.allowedHosts, ...allowedHosts],
      trustProxy,
    },
    dispatch,
    hub,
    tokens,
    clock,
    exchange: (code) => exchangeLinkCode(tokens, code),
    webhook: (channelId) => deps.skein.webhook(channelId),
    mcp: (request, principal) => mcp.handle(request, principal),
    wanted: (filter, principal, userId) => gatewayPieces.wanted(serving, filter, principal, userId),
    metrics: () => deps.skein.metrics(),
    problems: async () => ((await store.upkeep?.health()) ?? []).map(({ message }) => `${message}.`),
    log,
  });
  let closing: Promise<void> | null = null;
  const close = async () => {
    await server.drain(graceMs);
    await server.close();
    await mcp.close();
    hub.close();
  };
  return {
    handler: (request, response) => server.handle(request, response),
    upgrade: (request, socket, head) => server.upgrade(request, socket, head),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}
