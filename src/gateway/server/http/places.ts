import { openApiDocument } from "../../../protocol/openapi/document.ts";
import { pageHeaders } from "../../auth/headers.ts";
import { isAdmin, mayCall } from "../../auth/principal.ts";
import { Refused } from "../../calls/dispatch.ts";
import type { Ground } from "../door/ground.ts";
import { noSuch } from "../door/refusals.ts";
import type { Exchange } from "./exchange.ts";

/** The places beside the methods. */

const welcome = [
  "This is a Skein gateway: sessions of AI agents, for programs, people and agents.",
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

/** Why it is not ready may name places of this machine. */
export async function readyz(exchange: Exchange): Promise<void> {
  const principal = await exchange.enter();
  const reason = exchange.ground.parts.notReady();
  if (reason === null) return exchange.send({ text: '{"status":"ready"}' });
  const why = isAdmin(principal) ? reason : "The gateway is not ready yet";
  throw new Refused({ code: "unavailable", message: `${why}.`, retryable: true, retryAfterMs: 1000 });
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
