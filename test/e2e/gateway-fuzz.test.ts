import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { MethodName } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { closeCodes, wireLimits } from "../../src/protocol/frames.ts";
import { methodNames, methodTable } from "../../src/protocol/method-table.ts";
import { anyJson, paramsOf } from "../support/fuzz-params.ts";
import {
  exchangeFrames,
  exchangeRaw,
  idOf,
  listedCloses,
  mutated,
  rawProblem,
  refusalProblem,
  sentFrames,
} from "../support/fuzz-wire.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const config = `
channels:
  desk: { type: webhook, secret: "not a secret", url: "http://127.0.0.1:9/", users: {} }
`;
const scopes = ["read", "write", "tools", "admin"] as const;
/** Several tokens, because each has its own rate limit. */
const tokens: string[] = [];
const known = ["main", "agent:main:main", "agent:main:session:fuzz", "cron:job", "agent:main:session:new"];
let answersBeside = 0;
let folder: TemporaryFolder;
let gateway: WholeGateway;
let port = 0;
let beside: { stop(): Promise<void> };

beforeAll(async () => {
  folder = temporaryFolder("skein-fuzz-");
  gateway = await wholeGateway({ folder, config });
  port = Number(new URL(gateway.url).port);
  for (let index = 0; index < 8; index += 1) {
    tokens.push(await gateway.token({ scopes: [...scopes], allUsers: true }));
  }
  await haveSessions();
  beside = await goodClient();
});
afterAll(async () => {
  await gateway.close();
  folder.remove();
});

/** A random call to `tokens.revokeOwn` would revoke the token that the test uses. */
const fuzzed = methodNames.filter((name) => name !== "tokens.revokeOwn");

/** Creates a few sessions with content and adds their IDs to `known`. */
async function haveSessions(): Promise<void> {
  const client = await gateway.client();
  for (const sessionKey of known.slice(1, 4)) {
    const said = { sessionKey, message: "repeat good morning", idempotencyKey: sessionKey };
    const { runId } = await client.call("chat.send", said);
    await client.call("agent.wait", { runId, timeoutMs: 150_000 });
    const { messages, sessionId } = await client.call("chat.history", { sessionKey });
    known.push(runId, sessionId ?? "", ...messages.map(({ id }) => id));
  }
}

/** Sends requests continuously over one socket while the others run. */
async function goodClient() {
  const client = await gateway.client();
  const asking = { isOver: false };
  const asked = (async () => {
    while (!asking.isOver) {
      await client.call("models.list", {});
      answersBeside += 1;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return {
    stop: async () => {
      asking.isOver = true;
      await asked;
    },
  };
}

let turn = 0;
const anyToken = () => tokens[turn++ % tokens.length] as string;
const headersOf = (more: Readonly<Record<string, string>> = {}) => ({
  authorization: `Bearer ${anyToken()}`,
  "content-type": "application/json",
  ...more,
});
/** Shrinking would take longer than the run. The seed is printed instead. */
const runs = (numRuns: number) => ({ numRuns, endOnFailure: true });

describe("a gateway with invalid input", () => {
  test("params of every method, at their limits and beyond", async () => {
    const call = fc.oneof(
      ...fuzzed.map((name) => fc.tuple(fc.constant(name), paramsOf(methodTable[name].params, known))),
    );
    const ask = async ([name, params]: readonly [MethodName, unknown]) => {
      const given = name === "agent.wait" && params instanceof Object ? { ...params, timeoutMs: 0 } : params;
      const { status, body } = await gateway.rpc(name, given, anyToken());
      if (status === 200) return;
      expect(refusalProblem((body as { readonly error?: unknown }).error, status)).toBe(null);
    };
    await fc.assert(fc.asyncProperty(call, ask), runs(300));
  });

  const deep = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
  test.each<[string, string | Uint8Array, MethodName]>([
    ["nested 100,000 deep", deep, "sessions.list"],
    [
      "equally deep in a free-form field",
      `{"sessionKey":"main","name":"sessions_list","arguments":{"x":${deep}}}`,
      "tools.invoke",
    ],
    [
      "equally deep in a message",
      `{"sessionKey":"main","name":"sessions_send","arguments":{"message":${deep}}}`,
      "tools.invoke",
    ],
    ["not UTF-8", Uint8Array.from([0x7b, 0xff, 0x7d]), "sessions.list"],
    ["numbers out of range", '{"limit":1e999}', "sessions.list"],
    ["a duplicate key", '{"limit":1,"limit":"x"}', "sessions.list"],
    ["__proto__", '{"__proto__":{"limit":1},"constructor":{}}', "sessions.list"],
    ["torn", '{"limit":', "sessions.list"],
    ["several values", "{}{}", "sessions.list"],
    ["a byte order mark", '\ufeff{"limit":1}', "sessions.list"],
  ])("a body that is %s", async (_, body, method) => {
    const answer = await fetch(`${gateway.url}/rpc/${method}`, {
      method: "POST",
      headers: headersOf(),
      body,
    });
    const told = (await answer.json()) as { readonly error?: unknown };
    expect(answer.status === 200 ? null : refusalProblem(told.error, answer.status)).toBe(null);
  });

  test("frames of every kind", async () => {
    const talk = async (frames: Parameters<typeof exchangeFrames>[2]) => {
      const { answers, closed } = await exchangeFrames(gateway.url, anyToken(), frames);
      const refused = answers.filter(({ error }) => error !== undefined);
      expect(refused.map(({ error }) => refusalProblem(error)).filter((each) => each !== null)).toEqual([]);
      const askedFor = frames.flatMap((each) => ("text" in each ? (idOf(each.text) ?? []) : []));
      const isRaw = frames.some(({ kind }) => kind === "raw");
      const isOdd = frames.some(
        (each) => each.kind === "bytes" || ("text" in each && idOf(each.text) === null),
      );
      if (closed !== null && closed !== 1005 && closed !== 1006) expect(listedCloses).toContain(closed);
      if (isOdd && !isRaw) expect(closed).toBe(closeCodes.badFrame.code);
      if (!isOdd && !isRaw)
        expect({ closed, ids: ids(answers) }).toEqual({ closed: null, ids: askedFor.toSorted() });
      // Some requests on closed connections might be answered, but none twice.
      for (const id of new Set(ids(answers)))
        expect(count(ids(answers), id)).toBeLessThanOrEqual(count(askedFor, id));
    };
    await fc.assert(fc.asyncProperty(sentFrames, talk), runs(80));
  });

  test("headers and bodies with changed bytes", async () => {
    const lines = fc.record({
      method: fc.constantFrom(
        "GET",
        "POST",
        "DELETE",
        "PUT",
        "HEAD",
        "OPTIONS",
        "TRACE",
        "CONNECT",
        "PRI",
        "get",
      ),
      path: fc.constantFrom(...paths),
      headers: fc.array(fc.constantFrom(...oddHeaders), { maxLength: 4 }),
      body: fc.constantFrom("", "{}", '{"limit":1}', "0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\n", "zz\r\n"),
    });
    const request = lines.map(({ method, path, headers, body }) => {
      const own = [`Host: 127.0.0.1:${port}`, `Authorization: Bearer ${anyToken()}`, "Connection: close"];
      const length = headers.some((each) => /^(content-length|transfer)/i.test(each))
        ? []
        : [`Content-Length: ${body.length}`];
      return Buffer.from(
        `${[`${method} ${path} HTTP/1.1`, ...own, ...length, ...headers].join("\r\n")}\r\n\r\n${body}`,
        "latin1",
      );
    });
    const either = fc.oneof(
      { weight: 3, arbitrary: request },
      { weight: 2, arbitrary: mutated(request) },
      fc.uint8Array(),
    );
    const ask = async (bytes: Uint8Array) => {
      const came = await exchangeRaw(port, bytes, 100);
      const isHead = Buffer.from(bytes.slice(0, 5)).toString() === "HEAD ";
      expect(isHead ? null : rawProblem(came)).toBe(null);
    };
    await fc.assert(fc.asyncProperty(either, ask), runs(150));
  });

  test("event streams from any position, which their clients leave", async () => {
    const query = fc.oneof(
      fc.constantFrom("", "?events=run.*", "?keys=main&keys=x", "?after=1", "?events=%00", "?__proto__=1"),
      fc.webQueryParameters().map((each) => `?${each}`),
    );
    const last = fc.oneof(
      fc.constantFrom("", "0", "1", "-1", "1e3", "999999999999999", "9".repeat(400), "\u00ff", "0x1", "1,2"),
      fc.nat().map(String),
    );
    const ask = async (asked: string, id: string) => {
      const leaving = new AbortController();
      const headers = headersOf({ "last-event-id": id });
      const answer = await fetch(`${gateway.url}/events${asked}`, { headers, signal: leaving.signal });
      if (answer.status === 200) return leaving.abort();
      expect(
        refusalProblem(((await answer.json()) as { readonly error: unknown }).error, answer.status),
      ).toBe(null);
    };
    await fc.assert(fc.asyncProperty(query, last, ask), runs(60));
  });

  test("invalid MCP messages", async () => {
    const message = fc.record(
      {
        jsonrpc: fc.constantFrom("2.0", "1.0"),
        id: fc.oneof(fc.integer(), anyJson),
        method: fc.constantFrom(
          "initialize",
          "tools/list",
          "tools/call",
          "resources/read",
          "__proto__",
          "ping",
        ),
        params: fc.oneof(
          anyJson,
          fc.record(
            {
              name: fc.constantFrom("sessions_list", "constructor"),
              arguments: anyJson,
              uri: anyJson,
              _meta: anyJson,
            },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: ["jsonrpc"] },
    );
    const body = fc
      .oneof(message, fc.array(message, { maxLength: 3 }), anyJson)
      .map((each) => JSON.stringify(each));
    const version = fc.constantFrom(
      {},
      { "mcp-protocol-version": "2026-07-28" },
      { "mcp-session-id": "none" },
    );
    const ask = async (text: string, more: Readonly<Record<string, string | undefined>>) => {
      const accept = { accept: "application/json, text/event-stream" };
      const headers = headersOf({ ...accept, ...(more as Record<string, string>) });
      const answer = await fetch(`${gateway.url}/mcp`, { method: "POST", headers, body: text });
      const told = await answer.text();
      expect([answer.status, told.slice(0, 300)]).toEqual([
        expect.toSatisfy((status: number) => status < 500),
        told.slice(0, 300),
      ]);
      if (answer.status >= 400) expect(told).toMatch(/"(message)":"/);
    };
    await fc.assert(fc.asyncProperty(body, version, ask), runs(100));
  });

  test("invalid channel messages and link codes", async () => {
    const path = fc.constantFrom(
      "/channels/desk/inbound",
      "/channels/none/inbound",
      "/channels/__proto__/inbound",
      "/link",
    );
    const body = fc.oneof(
      anyJson.map((each) => JSON.stringify(each)),
      fc.constantFrom("", "{", '{"code":1}', deep),
    );
    const ask = async (where: string, text: string) => {
      const headers = { "content-type": "application/json", "x-skein-signature": "sha256=00" };
      const answer = await fetch(`${gateway.url}${where}`, { method: "POST", headers, body: text });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
      expect(await answer.text()).not.toBe("");
    };
    await fc.assert(fc.asyncProperty(path, body, ask), runs(60));
  });

  test("oversized input is refused, and leaves nothing in memory", async () => {
    const large = Buffer.alloc(wireLimits.frameBytes + 1024 * 1024, 0x20);
    const before = held();
    for (const where of ["/rpc/sessions.list", "/mcp", "/channels/desk/inbound"]) {
      for (const body of [large, new Blob([large]).stream()]) {
        const init = {
          method: "POST",
          headers: headersOf({ accept: "application/json, text/event-stream" }),
          body,
          duplex: "half",
        };
        // The connection might be closed before everything has been sent.
        const status = await fetch(`${gateway.url}${where}`, init as RequestInit).then(
          (answer) => answer.status,
          () => 413,
        );
        // A channel does not read an unsigned message.
        const refused = where.startsWith("/channels") ? [401, 413] : [413];
        expect(refused).toContain(status);
      }
    }
    const { closed } = await exchangeFrames(gateway.url, anyToken(), [
      { kind: "text", text: large.toString() },
    ]);
    expect(closed).toBe(closeCodes.tooLarge.code);
    await expect.poll(() => held() - before).toBeLessThan(16 * 1024 * 1024);
  });

  test("other clients are not affected", async () => {
    await beside.stop();
    expect(answersBeside).toBeGreaterThan(0);
    const log = readFileSync(join(folder.path, "log"), "utf8");
    expect(log.split("\n").filter((line) => /errorId|RangeError|TypeError/.test(line))).toEqual([]);
    expect((await gateway.rpc("sessions.list")).status).toBe(200);
  });
});

const ids = (answers: readonly { readonly id: string }[]) => answers.map(({ id }) => id).toSorted();
const count = (all: readonly string[], one: string) => all.filter((each) => each === one).length;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function held(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const paths = [
  "/",
  "//",
  "/healthz",
  "/rpc/models.list",
  "/rpc/models%2elist",
  "/rpc/models.list/",
  "/rpc//models.list",
  "/rpc/..%2f..%2fetc%2fpasswd",
  "/rpc/%E0%A4%A",
  "/rpc/%00",
  "/rpc/__proto__",
  `/rpc/${"a".repeat(1000)}`,
  `/${"a/".repeat(5000)}`,
  `/${"a".repeat(20_000)}`,
  "/../../etc/passwd",
  "/mcp",
  "/mcp?agent=%00",
  "/mcp/..",
  "/events?events=none",
  "/openapi.json?x=[]",
  "/channels/desk/inbound",
  "/channels/%2e%2e/inbound",
  "/link",
  "/ws",
  "*",
  "http://127.0.0.1/healthz",
  "//evil.example/mcp",
];

const oddHeaders = [
  "Content-Type: application/json",
  "Content-Type: text/plain",
  "Content-Type: ;",
  'Content-Type: application/json; charset="latin1"',
  "Content-Length: 0",
  "Content-Length: 2",
  "Content-Length: +2",
  "Content-Length: -1",
  "Content-Length: 99999999999999999999",
  "Content-Length: 27262976",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding : chunked",
  "Content-Encoding: gzip",
  "Expect: 100-continue",
  "Expect: tea",
  "Upgrade: websocket\r\nConnection: Upgrade",
  "Upgrade: h2c",
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Version: 1",
  "Accept: application/json, text/event-stream",
  "Origin: http://evil.example",
  "Host: evil.example",
  "Authorization: Bearer two",
  "X-Odd: a\r\n b",
  "X-Odd : a",
  "X-Odd: \u00ff\u0001",
  `X-Odd: ${"a".repeat(20_000)}`,
  "X-Forwarded-For: 1.2.3.4",
];
