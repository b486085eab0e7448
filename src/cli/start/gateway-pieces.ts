import type { Redactor } from "../../access/redaction/redactor.ts";
import { createEventHub } from "../../gateway/events/hub.ts";
import { durableNumbers } from "../../gateway/events/numbers.ts";
import { wantedFor } from "../../gateway/events/wanted.ts";
import { allHandlers } from "../../gateway/handlers/all.ts";
import { createMcp } from "../../gateway/mcp/create-mcp.ts";
import { ofUser } from "../../gateway/mcp/skein-parts.ts";
import { createServer } from "../../gateway/server/create-server.ts";
import type { GatewayPieces, HubParts, McpDoorParts } from "./pieces.ts";

/** What the gateway of `skein start` is put together from. */
export const gatewayPieces: GatewayPieces = {
  handlers: allHandlers,
  openHub,
  openMcp,
  wanted: (deps, params, principal, userId) => wantedFor(params, principal, userId, deps),
  listen: (parts) => createServer(parts),
};

function openHub({ tokens, subscribe, redactor, report }: HubParts) {
  const numbers = durableNumbers({ ledger: tokens.ledger, report });
  return createEventHub({ numbers, redactor: asked(redactor), subscribe, report });
}

/** Another one after a reload. */
function asked(redactor: () => Redactor): Redactor {
  return {
    redact: (text) => redactor().redact(text),
    redactJson: (value) => redactor().redactJson(value),
    stream: () => redactor().stream(),
  };
}

/** What a reload may change is asked for with each request. */
function openMcp({ tokens, version, deps, during, subscribe, report }: McpDoorParts) {
  return createMcp({
    version,
    get scope() {
      return deps().config.session.scope;
    },
    get defaultAgentId() {
      return deps().defaultAgentId;
    },
    isCurrent: (tokenId) => tokens.current(tokenId) !== null,
    callTool: (name, args, call) => during(({ skein }) => skein.callTool(name, args, call)),
    subscribe: ofUser(subscribe),
    report,
  });
}
