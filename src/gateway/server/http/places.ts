import { SkeinError } from "../../../core/errors.ts";
import { openApiDocument } from "../../../protocol/openapi/document.ts";
import { apiHeaders, pageHeaders } from "../../auth/headers.ts";
import type { Principal } from "../../auth/principal.ts";
import { isAdmin, mayCall } from "../../auth/principal.ts";
import { Refused } from "../../calls/dispatch.ts";
import type { Ground } from "../door/ground.ts";
import { noSuch } from "../door/refusals.ts";
import type { Exchange } from "./exchange.ts";

/** The places beside the methods. */

/** What the text at `/` begins with. */
export const welcomeLine = "This is a Skein gateway: sessions of AI agents, for programs, people and agents.";

const welcome = [
  welcomeLine,
  "",
  "  skein chat              talk with an agent",
  "  skein sessions ls       what is there",
  "  skein token create      a token for a program",
  "",
  "Programs ask with Authorization: Bearer <token> at /rpc/<method> and /ws; /openapi.json has every method.",
  "MCP is at /mcp. The code behind # in the link of a start is good for one token: POST /link.",
  "",
].join("\n");

export async function root(exchange: Exchange): Promise<void> {
  exchange.send({ headers: pageHeaders, contentType: "text/plain; charset=utf-8", text: welcome });
}

/** Whether the process lives; nothing else about it. */
export async function healthz(exchange: Exchange): Promise<void> {
  exchange.send({ text: '{"status":"ok"}' });
}

/**
 * Whether it can do its work: 200 or 503, for load balancers, which have no token. Only an admin sees the reasons: they
 * may name files of this machine.
 */
export async function readyz(exchange: Exchange): Promise<void> {
  const { parts } = exchange.ground;
  const hasToken = exchange.request.headers.authorization !== undefined;
  const principal = hasToken ? await exchange.enter().catch((error) => lastKnown(exchange, error)) : null;
  const problems = await parts.problems();
  const isReady = problems.length === 0;
  const seesAll = principal !== null && isAdmin(principal);
  const body = { status: isReady ? "ready" : "not_ready", ...(seesAll && !isReady ? { problems } : {}) };
  const headers = isReady ? apiHeaders : { ...apiHeaders, "retry-after": "1" };
  exchange.send({ status: isReady ? 200 : 503, headers, text: JSON.stringify(body) });
}

/** Where tokens cannot be read, because the database is damaged or gone, what was last read of them tells who is an admin. */
function lastKnown({ ground, request }: Exchange, error: unknown): Principal | null {
  if (error instanceof SkeinError) return ground.door.lastKnown(request);
  throw error;
}

/** Figures about everybody, for those who may know about everybody. */
export async function metrics(exchange: Exchange): Promise<void> {
  const principal = await exchange.enter();
  const may = mayCall(principal, { scope: "admin", needsAll: true });
  if (!may.allowed) throw new Refused({ code: "forbidden", message: `${may.problem}. ${may.advice}.` });
  const figures = await exchange.ground.parts.metrics();
  if (figures === null) throw new Refused(noSuch("figures here"));
  exchange.send({ contentType: figures.contentType, text: figures.body });
}

/** The document is the same for as long as the server is there. */
export function openApi({ parts }: Ground): (exchange: Exchange) => Promise<void> {
  let text: string | null = null;
  return async (exchange) => {
    await exchange.enter();
    text ??= JSON.stringify(openApiDocument({ version: parts.version }));
    exchange.send({ text });
  };
}
