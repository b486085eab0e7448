// Serves the route and the page of the chat, as Next.js would. See README.md.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { DELETE, GET, PATCH, POST } from "./app/api/chat/[[...path]]/route.ts";

const handlers = new Map(Object.entries({ DELETE, GET, PATCH, POST }));

const files: Readonly<Record<string, { readonly name: string; readonly type: string }>> = {
  "/": { name: "index.html", type: "text/html" },
  "/page.js": { name: "page.js", type: "text/javascript" },
  "/chat.js": { name: "chat.js", type: "text/javascript" },
  "/style.css": { name: "style.css", type: "text/css" },
};

async function respond(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (/^\/api\/chat(?:\/|$)/.test(pathname)) {
    const handler = handlers.get(request.method);
    return handler === undefined ? new Response(null, { status: 405 }) : handler(request);
  }
  const file = files[pathname];
  if (file === undefined) return new Response("There is no such page.", { status: 404 });
  const headers = new Headers({
    "content-type": `${file.type}; charset=utf-8`,
    "content-security-policy": "default-src 'self'; img-src data:; frame-ancestors 'none'",
    "cache-control": "no-cache",
  });
  const isKnown = /(?:^|; )chat_user=[\w-]{36}(?:;|$)/.test(request.headers.get("cookie") ?? "");
  if (!isKnown)
    headers.set(
      "set-cookie",
      `chat_user=${randomUUID()}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000`,
    );
  return new Response(await readFile(join(import.meta.dirname, "public", file.name)), { headers });
}

function requestOf(incoming: IncomingMessage): Request {
  const { method = "GET", url = "/" } = incoming;
  const headers = new Headers({
    cookie: incoming.headers.cookie ?? "",
    "content-type": incoming.headers["content-type"] ?? "",
  });
  const body = method === "GET" || method === "HEAD" ? null : Readable.toWeb(incoming);
  return new Request(`http://localhost${url}`, { method, headers, body, duplex: "half" });
}

const server = createServer(async (incoming, outgoing) => {
  try {
    const { status, headers, body } = await respond(requestOf(incoming));
    outgoing.setHeaders(headers).writeHead(status);
    if (body === null) outgoing.end();
    // A browser that disconnects ends only its own copy of the stream. The answer continues.
    else await pipeline(body, outgoing).catch(() => undefined);
  } catch (error) {
    console.error(error);
    if (!outgoing.headersSent) outgoing.writeHead(500);
    outgoing.end();
  }
});

const port = Number(process.env.PORT ?? 3000);
server.on("error", (error) => {
  console.error(`The chat cannot use port ${port}: ${error.message}. Set PORT to another one.`);
  process.exit(1);
});
server.listen(port, "127.0.0.1", () => {
  console.log(`The chat is at http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
