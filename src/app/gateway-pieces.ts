import type { Redactor } from "../access/redaction/redactor.ts";
import { createDurableNumbers } from "../gateway/events/event-numbers.ts";
import { selectEvents } from "../gateway/events/event-selection.ts";
import { createEventHub } from "../gateway/events/hub.ts";
import { subscribeForUser } from "../gateway/mcp/mcp-context.ts";
import { allHandlers } from "../gateway/methods/handlers.ts";
import { heavyToolQueueOf } from "../gateway/methods/heavy-calls.ts";
import { createServer } from "../gateway/server/create-server.ts";
import type { GatewayPieces, HubParts, McpDoor, McpDoorParts } from "./pieces.ts";

/** What the gateway of `skein start` is put together from. */
export const gatewayPieces: GatewayPieces = {
  handlers: allHandlers,
  openHub,
  openMcp,
  wanted: (deps, params, principal, userId) => selectEvents(params, principal, userId, deps),
  listen: (parts) => createServer(parts),
};

function openHub({ tokens, subscribe, redactor, report }: HubParts) {
  const numbers = createDurableNumbers({ ledger: tokens.ledger, report });
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

/** Loaded with the first request: most gateways never have one, and all would start the later for it. */
function openMcp(parts: McpDoorParts): McpDoor {
  let door: Promise<McpDoor> | null = null;
  return {
    handle: async (request, principal) => {
      door ??= loadMcp(parts);
      return (await door).handle(request, principal);
    },
    close: async () => (await door)?.close(),
  };
}

/** What a reload may change is asked for with each request. */
async function loadMcp(parts: McpDoorParts): Promise<McpDoor> {
  const { tokens, version, heavy, deps, acquire, subscribe, report } = parts;
  const { createMcp } = await import("../gateway/mcp/create-mcp.ts");
  return createMcp({
    version,
    get scope() {
      return deps().config.session.scope;
    },
    get defaultAgentId() {
      return deps().defaultAgentId;
    },
    isCurrent: (tokenId) => tokens.current(tokenId) !== null,
    callTool: (name, args, { tokenId, ...call }) =>
      heavy.run(tokenId, heavyToolQueueOf(name, []), call.signal, async () => {
        using lease = acquire();
        return await lease.deps.skein.callTool(name, args, call);
      }),
    allowedTools: async ({ userId, agentId, sessionKey }) => {
      using lease = acquire();
      const tools = await lease.deps.skein.tools({ userId, agentId, sessionKey });
      return new Set(tools.map(({ name }) => name));
    },
    subscribe: subscribeForUser(subscribe),
    report,
  });
}
