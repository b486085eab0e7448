import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { DeliveryError, OutboundMessage } from "./contract.ts";
import { createWebhook } from "./webhook.ts";
import { isSignedBy } from "./webhook-inbound.ts";

const secret = "s3cret";
const now = 1_700_000_000_500;
const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/in?token=t0ken`;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

const message = (change: Partial<OutboundMessage> = {}): OutboundMessage => ({
  text: "Guten Tag",
  idempotencyKey: "reply:r1",
  sessionKey: "agent:main:desk:user:ann",
  runId: "r1",
  userId: "ann",
  agentId: "main",
  signal: new AbortController().signal,
  ...change,
});
const accept = async () => ({ runId: "r", sessionKey: "k", isNew: true });
const webhook = (url: string | null) =>
  createWebhook({ id: "desk", secret, url, accept, clock: { now: () => now } });
const send = (url: string | null, change: Partial<OutboundMessage> = {}) =>
  webhook(url).deliver(message(change), { channel: "desk", to: "ann", threadId: "t1" });

/** Returns the error from a delivery that must fail. */
async function failure(url: string | null, change: Partial<OutboundMessage> = {}): Promise<DeliveryError> {
  const error: unknown = await send(url, change).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "delivery_failed" });
  expect(String(error)).not.toMatch(/s3cret|t0ken/);
  return error as DeliveryError;
}

const answering =
  (status: number, body = "", headers: Record<string, string> = {}) =>
  (request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    response.writeHead(status, headers).end(body);
  };

describe("webhook delivery", () => {
  test("sends a signed message to its target with its idempotency key", async () => {
    const got: { headers: IncomingMessage["headers"]; body: string; method: string | undefined }[] = [];
    const url = await serve(async (request, response) => {
      got.push({ headers: request.headers, body: await textOf(request), method: request.method });
      response.writeHead(201).end(JSON.stringify({ messageId: "m9", more: true }));
    });
    expect(await send(url)).toEqual({ status: 201, messageId: "m9" });
    const [{ headers, body, method } = { headers: {}, body: "", method: "" }] = got;
    expect(method).toBe("POST");
    expect(JSON.parse(body)).toEqual({
      sessionKey: "agent:main:desk:user:ann",
      agentId: "main",
      userId: "ann",
      runId: "r1",
      text: "Guten Tag",
      to: "ann",
      accountId: null,
      threadId: "t1",
    });
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "idempotency-key": "reply:r1",
      "x-skein-message-id": "reply:r1",
      "x-skein-timestamp": "1700000000",
    });
    const signed = { timestamp: "1700000000", messageId: "reply:r1", body };
    expect(isSignedBy(secret, signed, String(headers["x-skein-signature"]))).toBe(true);
  });

  test("sends the hash of a key that no header can contain, the same each time", async () => {
    const keys: unknown[] = [];
    const url = await serve((request, response) => {
      keys.push(request.headers["idempotency-key"]);
      answering(204)(request, response);
    });
    for (const idempotencyKey of ["日本\n", "日本\n", 'a"b']) await send(url, { idempotencyKey });
    expect(keys[0]).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect([keys[0] === keys[1], keys[1] === keys[2]]).toEqual([true, false]);
  });

  test.each([
    ["nothing", ""],
    ["no JSON", "<ok>"],
    ["null", "null"],
    ["an ID that is not a string", '{"messageId":5}'],
    ["a long ID", JSON.stringify({ messageId: "x".repeat(201) })],
    ["too much", JSON.stringify({ messageId: "m", more: "x".repeat(70_000) })],
  ])("a 2xx with %s still counts as delivered", async (_, body) => {
    expect(await send(await serve(answering(200, body)))).toEqual({ status: 200 });
  });

  test("reads only the beginning of an endless response", async () => {
    const url = await serve((request, response) => {
      request.resume();
      response.writeHead(200);
      const more = () => {
        while (response.write(Buffer.alloc(16_384))) if (response.destroyed) return;
        response.once("drain", more);
      };
      more();
    });
    expect(await send(url)).toEqual({ status: 200 });
  });

  test.each([
    [400, true],
    [401, true],
    [404, true],
    [408, false],
    [410, true],
    [425, false],
    [429, false],
    [500, false],
    [502, false],
    [503, false],
  ])("%i is permanent: %s", async (status, permanent) => {
    const error = await failure(await serve(answering(status, "no\u001b[2J")));
    expect(error).toMatchObject({ permanent, retryAfterMs: null, code: "delivery_failed" });
    expect(error.message).toContain(`it responded with ${status}: no\\u001b[2J`);
  });

  test("a failure is temporary: the same message is accepted the next time", async () => {
    let count = 0;
    const url = await serve((request, response) => {
      count += 1;
      answering(count === 1 ? 500 : 200)(request, response);
    });
    await failure(url);
    expect(await send(url)).toEqual({ status: 200 });
  });

  test.each([301, 302, 307, 308])("a redirect (%i) is not followed, and permanent", async (status) => {
    let followed = false;
    const elsewhere = await serve((request, response) => {
      followed = true;
      answering(200)(request, response);
    });
    const error = await failure(await serve(answering(status, "", { location: elsewhere })));
    expect([error.permanent, followed]).toEqual([true, false]);
  });

  test.each([
    ["7", 7000],
    [new Date(now + 60_500).toUTCString(), 60_500],
    [new Date(now - 60_000).toUTCString(), 0],
    ["soon", null],
  ])("Retry-After %s is %s ms", async (header, ms) => {
    const error = await failure(await serve(answering(429, "", { "retry-after": header })));
    expect(error.retryAfterMs).toBe(ms);
  });

  test("a hanging request is cut off by the signal; an unreachable server is a temporary failure", async () => {
    const controller = new AbortController();
    const hanging = await serve(() => controller.abort());
    expect(await failure(hanging, { signal: controller.signal })).toMatchObject({ permanent: false });
    const server = servers.pop();
    server?.closeAllConnections();
    await new Promise((done) => server?.close(done));
    const error = await failure(hanging);
    expect([error.permanent, error.message]).toEqual([false, expect.stringContaining("ECONNREFUSED")]);
  });

  test("a webhook without an address never delivers", async () => {
    expect(await failure(null)).toMatchObject({ permanent: true });
  });

  test.each([
    "ftp://x.org/s3cret",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "x.org",
    "",
    "https://ann:s3cret@x.org",
  ])("refuses the address %j without showing it", (url) => {
    expect(() => webhook(url)).toThrow(expect.objectContaining({ code: "invalid_arguments" }));
    expect(() => webhook(url)).toThrow(/^(?!.*(?:s3cret|passwd|x\.org))/);
  });

  test("[CHN6] a webhook without a secret is invalid", () => {
    expect(() => createWebhook({ id: "desk", secret: "", url: null, accept })).toThrow(
      /channels\.desk\.secret/,
    );
  });
});
