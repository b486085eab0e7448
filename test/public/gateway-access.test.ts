import { createHash } from "node:crypto";
import { globSync, readFileSync, statSync } from "node:fs";
import type { ClientRequest } from "node:http";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Params, Result } from "../../src/entry-client.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { usesDatabases } from "../support/empty-store.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const scopes = ["read", "write", "tools", "admin"] as const;
const wrong = `skein_${"A".repeat(43)}`;

let gateway: WholeGateway;
let methods: readonly Method[];
beforeAll(async () => {
  gateway = await wholeGateway({ config: "gateway: { allowedHosts: [skein.example] }\n" });
  methods = await listMethods();
});
afterAll(() => gateway.close());

interface Method {
  readonly name: string;
  readonly scope: string;
  readonly needsAllUsers: boolean;
}

/** Every method described in `/openapi.json`. */
async function listMethods(): Promise<Method[]> {
  const headers = { authorization: `Bearer ${gateway.admin}` };
  const { paths } = (await (await fetch(`${gateway.url}/openapi.json`, { headers })).json()) as {
    paths: Record<string, { post?: Record<string, unknown> }>;
  };
  return Object.entries(paths)
    .filter(([path]) => path.startsWith("/rpc/"))
    .map(([path, { post }]) => ({
      name: path.slice("/rpc/".length),
      scope: String(post?.["x-scope"]),
      needsAllUsers: post?.["x-needs-all-users"] === true,
    }));
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Sends a request with arbitrary headers, including `Host`. */
function ask(
  target: string,
  { method = "GET", headers = {}, url = gateway.url }: Asked = {},
): Promise<Answer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ hostname, port, path: target, method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", reject);
    sent.end();
  });
}
interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly url?: string;
}

type Created = Result<"tokens.create">;
async function create(request: Params<"tokens.create">, as = gateway.admin) {
  const { status, body } = await gateway.rpc("tokens.create", request, as);
  return { status, ...(body as Created) };
}
const errorCode = (body: unknown) => (body as { error?: { code: string } }).error?.code ?? "ok";
const isValid = async (token: string) => (await gateway.rpc("agents.list", {}, token)).status === 200;

describe("tokens", () => {
  test.skipIf(usesDatabases())("[GSA1] only the hash of a token is stored", async () => {
    const { token } = await create({ scopes: ["read"], userId: "ann" });
    expect(await isValid(token)).toBe(true);
    const secret = token.replace("skein_", "");
    const hash = createHash("sha256").update(token).digest("hex");
    const files = globSync("**/*", { cwd: gateway.root }).map((name) => join(gateway.root, name));
    const contents = files
      .filter((file) => statSync(file).isFile())
      .map((file) => readFileSync(file, "latin1"));
    expect(contents.some((text) => text.includes(hash))).toBe(true);
    expect(contents.filter((text) => text.includes(secret))).toEqual([]);
    const listed = JSON.stringify((await gateway.rpc("tokens.list")).body);
    expect(listed).not.toContain(secret);
    expect(listed).not.toContain(hash);
  });

  test("[GSA3] a token creates only tokens with the same rights or fewer", async () => {
    const expiresAt = Date.now() + 600_000;
    const maker = await create({ scopes: ["read", "admin"], allUsers: true, expiresAt });
    const refused: Params<"tokens.create">[] = [
      { scopes: ["write"] },
      { scopes: ["read", "tools"], userId: "ann" },
      { scopes: ["read"], expiresAt: expiresAt + 1 },
    ];
    const before = (await gateway.rpc("tokens.list")).body;
    for (const request of refused)
      expect({ request, ...(await create(request, maker.token)) }).toMatchObject({ request, status: 403 });
    expect((await gateway.rpc("tokens.list")).body).toMatchObject({
      count: (before as { count: number }).count,
    });
    const made = await create({ scopes: ["read"], userId: "ann" }, maker.token);
    expect(made).toMatchObject({ status: 200, scopes: ["read"], userId: "ann", expiresAt });
    const ofOne = await create({ scopes: [...scopes], userId: "ann" });
    expect((await create({ scopes: ["read"], userId: "ann" }, ofOne.token)).status).toBe(403);
  });

  test("[GSA4] revoking a token also revokes every token created with it", async () => {
    const admin = { scopes: [...scopes], allUsers: true };
    const first = await create(admin);
    const second = await create(admin, first.token);
    const third = await create({ scopes: ["read"], userId: "ann" }, second.token);
    const other = await create({ scopes: ["read"] }, first.token);
    await gateway.rpc("tokens.revoke", { tokenId: second.tokenId });
    const all = [first, second, third, other];
    expect(await Promise.all(all.map(({ token }) => isValid(token)))).toEqual([true, false, false, true]);
    await gateway.rpc("tokens.revoke", { tokenId: first.tokenId });
    expect(await Promise.all(all.map(({ token }) => isValid(token)))).toEqual([false, false, false, false]);
  });

  test("[GSA9] a method is accepted only with its scope", async () => {
    expect(methods.length).toBeGreaterThan(50);
    for (const scope of scopes) {
      const { token } = await create({ scopes: [scope], userId: "ann" });
      for (const method of methods) {
        const { body } = await gateway.rpc(method.name, { nonsense: true }, token);
        const isAccepted = scope === method.scope && !method.needsAllUsers;
        expect([scope, method.name, errorCode(body)]).toEqual([
          scope,
          method.name,
          isAccepted ? "invalid_request" : "forbidden",
        ]);
      }
    }
  });

  test("[GSA10] a token for one user reaches only that user's sessions", async () => {
    const [ann, bob] = await Promise.all(
      ["ann", "bob"].map((userId) => create({ scopes: [...scopes], userId })),
    );
    const key = "agent:main:session:diary";
    await gateway.rpc("sessions.create", { key, label: "of bob" }, bob?.token);
    expect((await gateway.rpc("sessions.get", { key }, bob?.token)).status).toBe(200);
    expect(errorCode((await gateway.rpc("sessions.get", { key }, ann?.token)).body)).toBe("not_found");
    expect((await gateway.rpc("sessions.list", {}, ann?.token)).body).toMatchObject({ count: 0 });
    for (const userId of ["bob", ""]) {
      const { body } = await gateway.rpc("sessions.get", { key, userId }, ann?.token);
      expect(["forbidden", "invalid_request"]).toContain(errorCode(body));
    }
    for (const { name } of methods.filter(({ needsAllUsers }) => needsAllUsers))
      expect([name, errorCode((await gateway.rpc(name, {}, ann?.token)).body)]).toEqual([name, "forbidden"]);
  });
});

describe("a token that ends before the body of a request has arrived", () => {
  const newSession = { path: "/rpc/sessions.create", body: { key: "agent:main:session:late" } };
  const clientInfo = { name: "test", version: "0" };
  const handshake = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const initialize = {
    path: "/mcp",
    body: { jsonrpc: "2.0", id: 1, method: "initialize", params: handshake },
  };
  const revoke = (tokenId: string) => gateway.rpc("tokens.revoke", { tokenId });
  const removeUser = () => gateway.rpc("users.remove", { userId: "late" });

  /** Sends the headers and the first byte of the body. */
  function begin(
    path: string,
    text: string,
    token: string,
  ): { sent: ClientRequest; answer: Promise<Answer> } {
    const { hostname, port } = new URL(gateway.url);
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "content-length": text.length,
    };
    const sent = httpRequest({ hostname, port, path, method: "POST", headers, agent: false });
    const answer = new Promise<Answer>((resolve, reject) => {
      sent.on("error", reject).on("response", (response) => {
        const status = response.statusCode ?? 0;
        response
          .toArray()
          .then((parts) => resolve({ status, text: Buffer.concat(parts).toString() }), reject);
      });
    });
    sent.write(text.slice(0, 1));
    return { sent, answer };
  }

  const isUsed = async (tokenId: string) => {
    const { tokens } = (await gateway.rpc("tokens.list")).body as Result<"tokens.list">;
    return tokens.some((each) => each.tokenId === tokenId && each.lastUsedAt !== undefined);
  };

  test.each([
    ["tokens.revoke", "a method call", newSession, revoke],
    ["tokens.revoke", "an MCP request", initialize, revoke],
    ["users.remove", "a method call", newSession, removeUser],
    ["users.remove", "an MCP request", initialize, removeUser],
  ])("[ATG3] after %s, %s does nothing", async (_, __, { path, body }, end) => {
    const { token, tokenId } = await create({ scopes: [...scopes], userId: "late" });
    const text = JSON.stringify(body);
    const { sent, answer } = begin(path, text, token);
    await soon(() => isUsed(tokenId)).toBe(true);
    expect((await end(tokenId)).status).toBe(200);
    sent.end(text.slice(1));
    expect(await answer).toMatchObject({ status: 401, text: expect.stringContaining("unauthorized") });
    const { users } = (await gateway.rpc("users.list")).body as Result<"users.list">;
    expect(users.filter(({ userId, sessions }) => userId === "late" && sessions > 0)).toEqual([]);
  });
});

describe("without a token", () => {
  test("[GSV9] the public paths work", async () => {
    for (const path of ["/healthz", "/readyz", "/"])
      expect([path, (await ask(path)).status]).toEqual([path, 200]);
    const linked = await fetch(`${gateway.url}/link`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code: "skein_code_none" }),
    });
    expect(await linked.text()).toContain("link code");
  });

  test("[GSV9] nothing else works", async () => {
    const paths = [
      "/openapi.json",
      "/events",
      "/metrics",
      "/mcp",
      ...methods.map(({ name }) => `/rpc/${name}`),
    ];
    for (const path of paths) {
      const method = path.startsWith("/rpc/") ? "POST" : "GET";
      expect([path, (await ask(path, { method })).status]).toEqual([path, 401]);
    }
    const socket = { connection: "Upgrade", upgrade: "websocket" };
    expect((await ask("/rpc/agents.list", { method: "POST", headers: socket })).status).not.toBe(200);
  });

  test.each(["token", "access_token"])("[GSV9] a token in the query as %s is ignored", async (name) => {
    const { status } = await ask(`/rpc/agents.list?${name}=${gateway.admin}`, { method: "POST" });
    expect(status).toBe(401);
  });
});

describe("the host and origin of a request", () => {
  const paths = ["/healthz", "/", "/nowhere", "/rpc/agents.list", "/events", "/ws"];
  const upgrade = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  };
  test.each<[string, Record<string, string>]>([
    ["an unknown Host", { host: "evil.example" }],
    ["an Origin of another site", { host: "localhost", origin: "https://evil.example" }],
    ["an opaque Origin", { host: "localhost", origin: "null" }],
    ["an Origin of another port", { host: "localhost", origin: "http://localhost:1" }],
    ["a cross-site request", { host: "localhost", "sec-fetch-site": "cross-site" }],
  ])("[GSA14] %s is rejected on every path", async (_, headers) => {
    const authorization = `Bearer ${gateway.admin}`;
    for (const path of paths)
      expect([path, (await ask(path, { headers: { ...headers, authorization } })).status]).toEqual([
        path,
        403,
      ]);
    expect((await ask("/ws", { headers: { ...upgrade, ...headers } })).status).toBe(403);
  });

  test("[GSA14] names of this machine and allowed hosts are accepted", async () => {
    const { host, port } = new URL(gateway.url);
    for (const each of ["localhost", `localhost:${port}`, host, "[::1]", "skein.example"])
      expect([each, (await ask("/healthz", { headers: { host: each } })).status]).toEqual([each, 200]);
    expect((await ask("/healthz", { headers: { host, origin: gateway.url } })).status).toBe(200);
  });
});

describe("the address to listen on", () => {
  test.each(["0.0.0.0", "::", "192.0.2.5", "box.lan"])(
    "[GSA16] %s is refused unless configured",
    async (host) => {
      const folder = temporaryFolder("skein-expose-");
      try {
        const start = ["start", "--dir", join(folder.path, "root"), "--port", "0"];
        const surroundings = { cwd: folder.path, home: folder.path };
        const byOption = await run([...start, "--host", host], surroundings);
        expect(byOption.exit).not.toBe(0);
        expect(byOption.err).toContain("--expose");
        const byConfig = await run(start, { ...surroundings, env: { SKEIN_GATEWAY__HOST: host } });
        expect(byConfig.exit).not.toBe(0);
        expect(byConfig.err).toContain("--expose");
      } finally {
        folder.remove();
      }
    },
  );
});

describe("failed authentication", () => {
  let apart: WholeGateway | null = null;
  afterEach(async () => {
    vi.useRealTimers();
    await apart?.close();
    apart = null;
  });

  /** A gateway whose delays never end on their own. */
  async function open(config = "") {
    const opened = await wholeGateway({ config });
    apart = opened;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    return (token: string, from = "") =>
      ask("/rpc/agents.list", {
        url: opened.url,
        method: "POST",
        headers: {
          authorization: `Bearer ${token === "admin" ? opened.admin : token}`,
          ...(from === "" ? {} : { "x-forwarded-for": from }),
        },
      });
  }

  /** Checks that an attempt is delayed while another request is answered. */
  async function expectDelay(attempt: () => Promise<Answer>, other: () => Promise<Answer>, status: number) {
    let isAnswered = false;
    const delayed = attempt().finally(() => {
      isAnswered = true;
    });
    for (let round = 0; round < 3; round += 1) expect((await other()).status).toBe(status);
    expect(isAnswered).toBe(false);
    await vi.advanceTimersByTimeAsync(60_000);
    expect((await delayed).status).toBe(401);
  }

  const proxy = 'gateway: { trustProxy: ["127.0.0.1"] }\n';

  test("[GSA11] is delayed for its address, and never for a valid token", async () => {
    const attempt = await open();
    for (let count = 0; count < 5; count += 1) expect((await attempt(wrong)).status).toBe(401);
    await expectDelay(
      () => attempt(wrong),
      () => attempt("admin"),
      200,
    );
  });

  test("[GSA11] [GSA12] an address forwarded by a trusted proxy is throttled separately", async () => {
    const attempt = await open(proxy);
    for (let count = 0; count < 5; count += 1)
      expect((await attempt(wrong, "198.51.100.1")).status).toBe(401);
    await expectDelay(
      () => attempt(wrong, "198.51.100.1"),
      () => attempt(wrong, "203.0.113.9"),
      401,
    );
  });

  test("[GSA12] a forwarded address from an untrusted proxy does not count", async () => {
    const attempt = await open();
    for (let count = 0; count < 5; count += 1) await attempt(wrong, `198.51.100.${count}`);
    await expectDelay(
      () => attempt(wrong, "203.0.113.9"),
      () => attempt("admin"),
      200,
    );
  });
});
