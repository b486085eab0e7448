import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { EventStream } from "../../src/entry-client.ts";
import { createStore } from "../../src/entry-store.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { usesDatabases } from "../support/empty-store.ts";
import { gifOf, jpegOf, pngOf } from "../support/images.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const scopes = ["read", "write", "tools", "admin"] as const;
const configured = "tiger-lily-secret-77";
const shaped = `ghp_${"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}`;
const vault = "agent:main:session:vault";

let folder: TemporaryFolder;
let gateway: WholeGateway;
let ann: string;
beforeAll(async () => {
  folder = temporaryFolder("skein-calls-");
  await plantSecrets(join(folder.path, "root"));
  gateway = await wholeGateway({
    folder,
    config: `models: { providers: { mistral: { apiKey: ${configured} } } }\n`,
  });
  ann = await gateway.token({ scopes: [...scopes], userId: "ann" });
});
afterAll(async () => {
  await gateway.close();
  folder.remove();
});

/** One of Ann's sessions, with secrets in every field that a method shows. */
async function plantSecrets(dir: string): Promise<void> {
  const store = await createStore({ dir, durability: "os" });
  const scope = { userId: "ann", agentId: "main" };
  const secrets = `${configured} and ${shaped}`;
  const meta = { displayName: `deploy with ${secrets}` };
  const { sessionId } = await store.sessions.create(scope, { key: vault, cwd: "/", meta });
  const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const usage = { ...none, totalTokens: 0, cost: { ...none, total: 0 } };
  const answer = {
    role: "assistant",
    content: [
      { type: "text", text: `I deploy with ${secrets}` },
      { type: "toolCall", id: "c1", name: "run", arguments: { command: `login ${secrets}` } },
    ],
    api: "rehearsal",
    provider: "rehearsal",
    model: "basic",
    stopReason: "toolUse",
    usage,
    timestamp: 2,
  };
  const result = {
    role: "toolResult",
    toolCallId: "c1",
    toolName: "run",
    content: [{ type: "text", text: `deployed with ${secrets}` }],
    isError: false,
    timestamp: 3,
  };
  const messages = [{ role: "user", content: `deploy with ${secrets}`, timestamp: 1 }, answer, result];
  await store.sessions.append(
    scope,
    sessionId,
    messages.map((message) => ({ draft: { type: "message", message } as never })),
  );
  await store.close();
}

interface WireError {
  readonly code: string;
  readonly message: string;
  readonly details?: { readonly problems?: readonly { readonly path: string }[] };
}
const errorOf = (body: unknown) => (body as { error?: WireError }).error;

interface MethodSchema {
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, unknown>>;
}

/** Every method with the schema for its params. */
async function listMethods(): Promise<[name: string, needsAllUsers: boolean, params: MethodSchema][]> {
  const headers = { authorization: `Bearer ${gateway.admin}` };
  // biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document
  const { paths } = (await (await fetch(`${gateway.url}/openapi.json`, { headers })).json()) as any;
  return Object.keys(paths)
    .filter((path) => path.startsWith("/rpc/"))
    .map((path) => {
      const { post } = paths[path];
      const schema = post.requestBody?.content["application/json"].schema ?? {};
      return [path.slice("/rpc/".length), post["x-needs-all-users"] === true, schema];
    });
}

describe("POST /rpc/<method>", () => {
  test("[GSV1] returns the result of the method", async () => {
    const { status, body } = await gateway.rpc("sessions.create", { label: "trip" }, ann);
    expect([status, body]).toMatchObject([200, { label: "trip" }]);
    const { key } = body as { key: string };
    const answer = await fetch(`${gateway.url}/rpc/sessions.get`, {
      method: "POST",
      headers: { authorization: `Bearer ${ann}`, "content-type": "application/json" },
      body: JSON.stringify({ key }),
    });
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await answer.json()).toMatchObject({ key, label: "trip" });
  });

  test("[GSV1] a missing body means no params", async () => {
    const headers = { authorization: `Bearer ${ann}` };
    const answer = await fetch(`${gateway.url}/rpc/agents.list`, { method: "POST", headers });
    expect([answer.status, await answer.json()]).toMatchObject([200, { agents: [{ id: "main" }] }]);
  });

  test("[GSV3] an unexpected error is internal, without its message or stack", async () => {
    const home = temporaryFolder("skein-internal-");
    const skein = await createSkein({
      dir: home.path,
      config: { logging: { level: "error", file: join(home.path, "log") } },
      agents: [defineAgent({ id: "main", model: "rehearsal/basic" })],
      env: {},
    });
    const mounted = await mountOverHttp(skein, home.path);
    try {
      vi.spyOn(skein.store.sessions, "list").mockRejectedValue(new TypeError("cannot read /srv/private"));
      const error = await mounted.call("sessions.list", {}).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "internal", details: { errorId: expect.any(String) } });
      expect(JSON.stringify(error)).not.toMatch(/srv|private|\.ts|at /);
      await soon(() => readFileSync(join(home.path, "log"), "utf8")).toContain("/srv/private");
    } finally {
      await mounted.close();
      await skein.close();
      home.remove();
    }
  });

  test("[GSV4] with a body of more than 25 MiB is too_large, and the next request is served", async () => {
    const send = async (body: Uint8Array | ReadableStream) => {
      const answer = await fetch(`${gateway.url}/rpc/agents.list`, {
        method: "POST",
        headers: { authorization: `Bearer ${ann}`, "content-type": "application/json" },
        body,
        duplex: "half",
      } as RequestInit);
      return [answer.status, errorOf(await answer.json())?.code];
    };
    const bytes = new Uint8Array(25 * 1024 * 1024 + 1).fill(32);
    expect(await send(bytes)).toEqual([413, "too_large"]);
    const pieces = Array.from({ length: 26 }, (_, index) => bytes.subarray(index << 20, (index + 1) << 20));
    expect(await send(ReadableStream.from(pieces))).toEqual([413, "too_large"]);
    expect((await gateway.rpc("agents.list", {}, ann)).status).toBe(200);
  });

  test("[WLK4] with invalid params is invalid_request, with the path of each wrong field", async () => {
    for (const [name, , { properties = {} }] of await listMethods()) {
      const fields = Object.keys(properties).filter((field) => field !== "arguments");
      const params = Object.fromEntries([...fields, "nonsense"].map((field) => [field, { $ne: null }]));
      const { status, body } = await gateway.rpc(name, params);
      const error = errorOf(body);
      expect([name, status, error?.code]).toEqual([name, 400, "invalid_request"]);
      const paths = error?.details?.problems?.map(({ path }) => path.split(".")[0]);
      expect([name, paths]).toEqual([name, expect.arrayContaining([...fields, "nonsense"])]);
    }
  });
});

describe("another user's session", () => {
  /** Params that name a session and its parts, to the extent that the method requires them. */
  function paramsOf({ required = [] }: MethodSchema, name: string, ids: Readonly<Record<string, string>>) {
    const values: Readonly<Record<string, unknown>> = {
      key: name,
      sessionKey: name,
      keys: [name],
      asker: name,
      target: name,
      query: "deploy",
      message: "hello",
      idempotencyKey: randomUUID(),
      entryIds: [ids.entryId],
      sha256: "0".repeat(64),
      answer: "approve",
      name: "sessions_list",
      files: [],
      ...ids,
    };
    return Object.fromEntries(required.map((field) => [field, values[field]]));
  }

  test("[WLK3] gets exactly the same response as one that does not exist", async () => {
    const { body: sent } = await gateway.rpc(
      "chat.send",
      { sessionKey: vault, message: "repeat hello", idempotencyKey: "vault-1" },
      ann,
    );
    const { runId } = sent as { runId: string };
    await gateway.rpc("agent.wait", { runId }, ann);
    const { body: page } = await gateway.rpc("sessions.entries", { key: vault }, ann);
    const entryId = (page as { entries: { id: string }[] }).entries[0]?.id ?? "";
    const theirs = { runId, entryId, approvalId: randomUUID(), outboxId: randomUUID() };
    const nowhere = { ...theirs, runId: randomUUID(), entryId: entryId.replace(/./g, "0") };
    const before = JSON.stringify(page);
    let refusals = 0;
    for (const [name, needsAllUsers, schema] of await listMethods()) {
      if (needsAllUsers || (schema.required ?? []).length === 0) continue;
      // A method that writes creates a session for this user.
      const other = await gateway.token({ scopes: [...scopes], userId: `other-${name}` });
      const found = await gateway.rpc(name, paramsOf(schema, vault, theirs), other);
      const missing = await gateway.rpc(name, paramsOf(schema, "agent:main:session:tluav", nowhere), other);
      expect({ name, ...found, body: plain(found.body, theirs) }).toEqual({
        name,
        ...missing,
        body: plain(missing.body, nowhere),
      });
      if (found.status !== 200) refusals += 1;
      expect(JSON.stringify(found.body)).not.toContain("deployed");
    }
    expect(refusals).toBeGreaterThan(15);
    expect(JSON.stringify((await gateway.rpc("sessions.entries", { key: vault }, ann)).body)).toBe(before);
  });

  /** Returns a body without IDs, times and the requested names. */
  function plain(body: unknown, { entryId = "" }: Readonly<Record<string, string>>): unknown {
    const text = JSON.stringify(body)
      .replaceAll(/vault|tluav/g, "?")
      .replaceAll(entryId, "<entry>")
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<id>")
      .replaceAll(/\b[0-9a-f]{16}\b/g, "<id>")
      .replaceAll(/\b\d{13}\b/g, "0");
    return JSON.parse(text);
  }
});

describe("secrets", () => {
  const reads: readonly (readonly [string, object])[] = [
    ["sessions.list", {}],
    ["sessions.get", { key: vault }],
    ["sessions.resolve", { key: vault }],
    ["sessions.preview", { keys: [vault] }],
    ["sessions.tree", { key: vault }],
    ["sessions.entries", { key: vault }],
    ["sessions.search", { query: "deploy" }],
    ["sessions.context", { key: vault }],
    ["sessions.export", { key: vault, format: "md" }],
    ["sessions.export", { key: vault, format: "html" }],
    ["chat.history", { sessionKey: vault }],
    ["runs.list", {}],
  ];
  const isOpen = (body: unknown) =>
    [configured, shaped].some((secret) => JSON.stringify(body).includes(secret));

  test.skipIf(usesDatabases())(
    "[WLK7] a client without the scope admin never receives one unmasked",
    async () => {
      const plain = await gateway.token({ scopes: ["read", "write", "tools"], userId: "ann" });
      const client = await gateway.client(plain);
      const stream = client.events();
      await stream.ready;
      const sessionKey = "agent:main:session:talk";
      const message = `repeat ${configured} and ${shaped}`;
      const { runId } = await client.call("chat.send", { sessionKey, message, idempotencyKey: "talk-1" });
      expect(isOpen(await client.call("agent.wait", { runId }))).toBe(false);
      expect(isOpen(await eventsUntilEnd(stream, runId))).toBe(false);
      expect(isOpen(await client.call("runs.get", { runId }))).toBe(false);
      let shown = 0;
      for (const [method, params] of reads) {
        const { status, body } = await gateway.rpc(method, params, plain);
        expect([method, status]).toEqual([method, 200]);
        expect([method, isOpen(body)]).toEqual([method, false]);
        if (isOpen((await gateway.rpc(method, params, ann)).body)) shown += 1;
      }
      // An admin receives the stored text.
      expect(shown).toBeGreaterThan(5);
      expect(isOpen((await gateway.rpc("config.get")).body)).toBe(false);
    },
  );

  async function eventsUntilEnd(stream: EventStream, runId: string): Promise<unknown[]> {
    const events: unknown[] = [];
    for await (const { event, payload } of stream) {
      events.push({ event, payload });
      if (event === "run.ended" && payload.runId === runId) break;
    }
    return events;
  }
});

describe("a zero byte", () => {
  test("in a user ID leaves users.list usable", async () => {
    const userId = "zero\0byte";
    const sent = { sessionKey: "main", message: "Hello", idempotencyKey: "1", userId };
    const { body } = await gateway.rpc("chat.send", sent);
    const { runId } = body as { runId: string };
    await gateway.rpc("agent.wait", { runId, timeoutMs: 150_000, userId });
    const listed = await gateway.rpc("users.list");
    const { users } = listed.body as { users: { userId: string | null }[] };
    expect(users.find((user) => user.userId === userId)).toMatchObject({ sessions: 1, runs: 1 });
  });

  test("in the role of a search finds nothing", async () => {
    const { status, body } = await gateway.rpc("sessions.search", { query: "deploy", role: "\0" }, ann);
    expect([status, body]).toMatchObject([200, { hits: [] }]);
  });
});

describe("chat", () => {
  test("[CLT6] sessions.patch with the same ifVersion returns the first result again", async () => {
    const key = "agent:main:session:versioned";
    const { body } = await gateway.rpc("sessions.create", { key }, ann);
    const { version: ifVersion } = body as { version: number };
    const patch = (params: object) => gateway.rpc("sessions.patch", { key, ifVersion, ...params }, ann);
    const first = await patch({ displayName: "Trip" });
    expect(first.status).toBe(200);
    expect(await patch({ displayName: "Trip" })).toEqual(first);
    for (const other of [{ displayName: "Other" }, {}]) expect((await patch(other)).status).toBe(409);
  });

  test("[GTK8] chat.inject writes a note without a model call", async () => {
    const sessionKey = "agent:main:session:notes";
    const note = { sessionKey, message: "The office is closed.", idempotencyKey: "note-1" };
    await gateway.rpc("sessions.create", { key: sessionKey }, ann);
    const { body } = await gateway.rpc("chat.inject", note, ann);
    const { runId } = body as { runId: string };
    const { body: waited } = await gateway.rpc("agent.wait", { runId }, ann);
    expect(waited).toMatchObject({ finished: true, state: "ok", usage: { totalTokens: 0 } });
    expect((await gateway.rpc("chat.inject", note, ann)).body).toEqual(body);
    const { body: history } = await gateway.rpc("chat.history", { sessionKey }, ann);
    const { messages } = history as { messages: { role: string; content: unknown }[] };
    expect(messages.map(({ role }) => role)).toEqual(["assistant"]);
    expect(JSON.stringify(messages)).toContain("The office is closed.");
  });

  test.each(["chat.send", "chat.inject", "sessions.send", "agent"])(
    "%s rejects an idempotency key that no database can store unchanged",
    async (method) => {
      const session = method === "sessions.send" ? { key: "main" } : { sessionKey: "main" };
      const { status, body } = await gateway.rpc(
        method,
        { ...session, message: "Hello", idempotencyKey: "k\ud800" },
        ann,
      );
      expect([status, errorOf(body)]).toMatchObject([
        400,
        { code: "invalid_request", message: expect.stringContaining("half of a surrogate pair") },
      ]);
    },
  );

  const attach = (mimeType: string, bytes: Buffer, idempotencyKey: string) => {
    const attachments = [{ mimeType, data: bytes.toString("base64") }];
    const sessionKey = "agent:main:session:pictures";
    return gateway.rpc("chat.send", { sessionKey, message: "Look", idempotencyKey, attachments }, ann);
  };

  test.each([
    ["text", "image/png", Buffer.from("no image at all")],
    ["the beginning of an image", "image/png", pngOf(4, 3).subarray(0, 20)],
    ["SVG", "image/svg+xml", Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')],
    ["PDF", "image/jpeg", Buffer.from("%PDF-1.7 and more of it, as long as it may be")],
  ])("[GTK18] %s as an attachment is rejected", async (what, mimeType, bytes) => {
    const { status, body } = await attach(mimeType, bytes, `bad ${what}`);
    expect([status, errorOf(body)?.message]).toEqual([
      400,
      expect.stringContaining("PNG, JPEG, GIF or WebP"),
    ]);
    const { body: got } = await gateway.rpc("sessions.get", { key: "agent:main:session:pictures" }, ann);
    expect(errorOf(got)?.code).toBe("not_found");
  });

  test("[GTK18] images are accepted by their bytes", async () => {
    for (const [index, bytes] of [pngOf(4, 3), jpegOf(4, 3), gifOf(4, 3)].entries()) {
      const { status, body } = await attach("image/other", bytes, `good ${index}`);
      expect(status).toBe(200);
      await gateway.rpc("agent.wait", { runId: (body as { runId: string }).runId }, ann);
    }
  });
});

describe("a changed configuration file", () => {
  let apart: WholeGateway | null = null;
  let home: TemporaryFolder;
  afterEach(async () => {
    await apart?.close();
    apart = null;
    home.remove();
  });

  async function open() {
    home = temporaryFolder("skein-changed-");
    const opened = await wholeGateway({ folder: home, config: "agents: { main: {} }\n" });
    apart = opened;
    const file = join(home.path, "skein.yaml");
    const text = readFileSync(file, "utf8");
    return {
      write: (agents: string, more = "") => writeFileSync(file, text.replace("{ main: {} }", agents) + more),
      agents: async () => {
        const { agents } = (await opened.rpc("agents.list")).body as { agents: { id: string }[] };
        return agents.map(({ id }) => id);
      },
      refusedReloads: async () => {
        const headers = { authorization: `Bearer ${opened.admin}` };
        const text = await (await fetch(`${opened.url}/metrics`, { headers })).text();
        return Number(/skein_gateway_reloads_total\{outcome="refused"\} (\d+)/.exec(text)?.[1] ?? 0);
      },
    };
  }

  test("[GST7] takes effect without a restart", async () => {
    const { write, agents } = await open();
    expect(await agents()).toEqual(["main"]);
    write("{ main: {}, second: {} }");
    await soon(agents).toEqual(["main", "second"]);
  });

  test("[GST8] with an error leaves the running configuration unchanged", async () => {
    const { write, agents, refusedReloads } = await open();
    write("{ main: {}, second: {} }", "lanes: { fast: 1 }\n");
    await soon(refusedReloads).toBe(1);
    expect(await agents()).toEqual(["main"]);
    write("{ main: {}, third: {} }");
    await soon(agents).toEqual(["main", "third"]);
  });
});
