import { mkdirSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/entry-client.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const page = '<!doctype html><script type="module" src="./assets/main-a1b2.js"></script>';
const script = "console.log('a console');\n".repeat(50);
const folder = temporaryFolder("skein-console-");
const built = join(folder.path, "page");

let gateway: WholeGateway;
beforeAll(async () => {
  mkdirSync(join(built, "assets", "folder.js"), { recursive: true });
  writeFileSync(join(built, "index.html"), page);
  writeFileSync(join(built, "secret.js"), "secret");
  writeFileSync(join(built, "assets", "main-a1b2.js"), script);
  writeFileSync(join(built, "assets", "main-a1b2.js.br"), brotliCompressSync(script));
  writeFileSync(join(built, "assets", "main-a1b2.js.gz"), gzipSync(script));
  writeFileSync(join(built, "assets", "look-c3d4.css"), "a { color: red }");
  writeFileSync(join(built, "assets", "notes.txt"), "not of the console");
  writeFileSync(join(built, "assets", ".hidden.js"), "hidden");
  gateway = await wholeGateway({ config: `gateway: { console: ${built}, basePath: /tools/skein }\n` });
});
afterAll(async () => {
  await gateway.close();
  folder.remove();
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
}

/** Sends a GET request for exactly this path, because `fetch` would resolve `..` itself. */
function get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const { hostname, port } = new URL(gateway.url);
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ hostname, port, path, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => void chunks.push(chunk));
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes: Buffer.concat(chunks),
        }),
      );
    });
    sent.on("error", reject).end();
  });
}

describe("the console", () => {
  test("[CON1] the page and its assets carry a policy that allows only files of the gateway", async () => {
    const policy =
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
      "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    for (const [path, type] of [
      ["/", "text/html; charset=utf-8"],
      ["/assets/main-a1b2.js", "text/javascript; charset=utf-8"],
      ["/assets/look-c3d4.css", "text/css; charset=utf-8"],
    ] as const) {
      const { status, headers } = await get(path);
      expect({ path, status, ...headers }).toMatchObject({
        path,
        status: 200,
        "content-type": type,
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
      });
    }
  });

  test("the page is checked on every load, and sent again only after a change", async () => {
    const first = await get("/");
    expect([first.bytes.toString(), first.headers["cache-control"]]).toEqual([page, "no-cache"]);
    const etag = String(first.headers.etag);
    const unchanged = await get("/", { "if-none-match": `"other", W/${etag}` });
    expect([unchanged.status, unchanged.bytes.length, unchanged.headers.etag]).toEqual([304, 0, etag]);
    const changed = `${page}<!-- newer -->`;
    writeFileSync(join(built, "index.html"), changed);
    const second = await get("/", { "if-none-match": etag });
    expect([second.status, second.bytes.toString()]).toEqual([200, changed]);
    writeFileSync(join(built, "index.html"), page);
  });

  test("an asset is cached for a year, and compressed for browsers that accept it", async () => {
    const path = "/assets/main-a1b2.js";
    for (const [accepted, encoding, bytes] of [
      ["gzip, deflate, br", "br", brotliCompressSync(script)],
      ["gzip;q=0.5, br;q=0", "gzip", gzipSync(script)],
      ["identity", undefined, Buffer.from(script)],
    ] as const) {
      const answer = await get(path, { "accept-encoding": accepted });
      expect(answer.headers).toMatchObject({
        "cache-control": "public, max-age=31536000, immutable",
        vary: "accept-encoding",
      });
      expect([answer.headers["content-encoding"], answer.bytes.equals(bytes)]).toEqual([encoding, true]);
    }
    const plain = await get("/assets/look-c3d4.css", { "accept-encoding": "br, gzip" });
    expect([plain.headers["content-encoding"], plain.bytes.toString()]).toEqual([
      undefined,
      "a { color: red }",
    ]);
  });

  test.each([
    "/assets/lost.js",
    "/assets/",
    "/assets",
    "/assets/../secret.js",
    "/assets/..%2fsecret.js",
    "/assets/%2e%2e/secret.js",
    "/assets/%2e%2e%2fsecret.js",
    "/assets/..%5csecret.js",
    `/assets/${encodeURIComponent("/etc/passwd")}`,
    "/assets/main-a1b2.js%00.css",
    "/assets/folder.js",
    "/assets/notes.txt",
    "/assets/.hidden.js",
    "/assets/main-a1b2.js.br",
    "/secret.js",
    "/index.html",
    "/tools/skein/assets/../../../secret.js",
  ])("[CON2] %s is not found", async (path) => {
    const { status, headers, bytes } = await get(path);
    expect([status, headers["cache-control"]]).toEqual([404, "no-store"]);
    expect(bytes.toString()).toContain("not_found");
  });
});

describe("the base path", () => {
  const base = "/tools/skein";

  test.each([base, ""])("[CON3] the page, methods, events and sockets work under %j", async (prefix) => {
    expect((await get(`${prefix}/`)).bytes.toString()).toBe(page);
    expect((await get(`${prefix}/assets/main-a1b2.js`)).bytes.toString()).toBe(script);
    expect((await get(`${prefix}/healthz`)).status).toBe(200);
    expect((await get(`${prefix}/events`)).status).toBe(401);
    const answer = await fetch(`${gateway.url}${prefix}/rpc/agents.list`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.admin}` },
    });
    expect(answer.status).toBe(200);
    const client = await connect(`${gateway.url}${prefix}/`, { token: gateway.admin });
    expect(await client.call("agents.list", {})).toMatchObject({ count: 1 });
    await client.close();
  });

  test("without its slash it redirects by a relative URL, which a proxy does not have to rewrite", async () => {
    const { status, headers } = await get(`${base}?view=desk`);
    expect([status, headers.location]).toEqual([308, "./skein/?view=desk"]);
    const page = new URL(String(headers.location), `https://example.org${base}`);
    expect(page.href).toBe("https://example.org/tools/skein/?view=desk");
  });

  test("a longer segment is another path", async () => {
    expect((await get(`${base}s/healthz`)).status).toBe(404);
  });
});

describe("without the console", () => {
  test.each([false, join(folder.path, "nowhere")])(
    "`gateway.console: %s` serves a short text",
    async (where) => {
      const plain = await wholeGateway({ config: `gateway: { console: ${where} }\n` });
      try {
        const answer = await fetch(plain.url);
        expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
        expect((await answer.text()).split("\n")[0]).toContain("This is a Skein gateway");
        expect((await fetch(`${plain.url}/assets/main-a1b2.js`)).status).toBe(404);
      } finally {
        await plain.close();
      }
    },
  );
});
