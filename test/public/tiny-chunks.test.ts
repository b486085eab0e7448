import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { connect as connectSocket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { Started, startCli } from "../support/cli-process.ts";
import { skeinProgram } from "../support/programs.ts";
import { findRunning } from "../support/running-gateway.ts";

/** Enough for an idle gateway and a few megabytes of request bodies. */
const heapMb = 64;
const secret = "a-secret-of-the-desk-channel";

let folder: TemporaryFolder;
let gateway: Started;
let url: URL;
let token: string;

/** One gateway for all tests. Each test leaves it running. */
beforeAll(async () => {
  folder = temporaryFolder();
  const config = join(folder.path, "skein.yaml");
  writeFileSync(
    config,
    `defaults: { model: rehearsal/basic }\nchannels: { desk: { type: webhook, secret: ${secret} } }\n`,
  );
  const dir = join(folder.path, "root");
  gateway = new Started(
    [`--max-old-space-size=${heapMb}`, skeinProgram, "--config", config, "start", "--port", "0"],
    { SKEIN_DIR: dir, SKEIN_LOGGING__LEVEL: "silent", npm_lifecycle_event: "" },
    { cwd: folder.path },
  );
  await gateway.until(/Press Ctrl-C to stop it/);
  url = new URL(findRunning(dir)?.url ?? "");
  token = readFileSync(join(dir, "token"), "utf8").trim();
});

afterAll(async () => {
  gateway.child.kill("SIGKILL");
  await gateway.end();
  folder.remove();
});

/** A chunked request whose body arrives in one-byte chunks, with many of them in each write. */
class TinyChunks {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  answer = "";
  #isOver = false;

  constructor(path: string, headers: Readonly<Record<string, string | undefined>>, method = "POST") {
    this.socket = connectSocket(Number(url.port), url.hostname);
    this.socket.setEncoding("utf8").on("data", (text: string) => {
      this.answer += text;
    });
    this.socket.on("error", () => undefined);
    this.closed = new Promise((resolve) => this.socket.once("close", resolve));
    void this.closed.then(() => {
      this.#isOver = true;
    });
    const lines = Object.entries({
      host: url.host,
      "content-type": "application/json",
      "transfer-encoding": "chunked",
      ...headers,
    }).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}\r\n`]));
    this.socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  }

  /** Stops early if the gateway has closed the connection. */
  async send(bytes: number): Promise<void> {
    const each = 32 * 1024;
    const part = "1\r\n \r\n".repeat(each);
    for (let sent = 0; sent < bytes && !this.#isOver; sent += each) {
      if (this.socket.write(part)) continue;
      await this.#next("drain");
    }
  }

  /** Waits for the event or until the connection is closed. */
  #next(event: "drain" | "data"): Promise<void> {
    return new Promise(
      (resolve) => void this.socket.once(event, () => resolve()).once("close", () => resolve()),
    );
  }

  async status(): Promise<number> {
    for (;;) {
      const status = /^HTTP\/1\.1 (\d+)/.exec(this.answer)?.[1];
      if (status !== undefined) return Number(status);
      if (this.#isOver) throw new Error("The connection was closed without an answer");
      await this.#next("data");
    }
  }
}

/**
 * Sends most of a body and leaves the request open, so that the gateway still holds everything it keeps of the body.
 */
async function flood(path: string, headers: Readonly<Record<string, string>>): Promise<TinyChunks> {
  const chunks = new TinyChunks(path, headers);
  await chunks.send(1_500_000);
  return chunks;
}

async function expectAlive(): Promise<void> {
  const health = await fetch(new URL("/healthz", url));
  expect(health.status).toBe(200);
  expect(gateway.child.exitCode).toBe(null);
  expect(gateway.child.signalCode).toBe(null);
}

const bearer = () => ({ authorization: `Bearer ${token}` });
const signed = () => ({
  "x-skein-timestamp": String(Math.floor(Date.now() / 1000)),
  "x-skein-message-id": "m1",
  "x-skein-signature": `sha256=${createHmac("sha256", "another secret").update("x").digest("hex")}`,
});

describe("a body in chunks of one byte", () => {
  test.each([
    ["/rpc/sessions.list", bearer],
    ["/mcp", bearer],
    ["/channels/desk/inbound", signed],
  ] as const)("[BDY1] does not end the gateway: %s", async (path, headers) => {
    const floods = await Promise.all([1, 2].map(() => flood(path, headers())));
    await expectAlive();
    for (const { socket } of floods) socket.destroy();
  });

  test("[BDY2] is refused at 65,536 chunks, and its connection is closed", async () => {
    const body = new TinyChunks("/rpc/sessions.list", bearer());
    await body.send(65_536);
    expect(body.answer).toBe("");
    body.socket.write("1\r\n \r\n");
    expect(await body.status()).toBe(413);
    await body.closed;
    expect(body.answer).toContain('"too_large"');
  });

  test("is dropped while an event stream is being sent", async () => {
    const floods = Array.from({ length: 10 }, () => new TinyChunks("/events", bearer(), "GET"));
    await Promise.all(floods.map((each) => each.send(80_000)));
    for (const each of floods) expect(await each.status()).toBe(200);
    await expectAlive();
    for (const { socket } of floods) socket.destroy();
  });

  test.each([
    ["no signature", { "x-skein-signature": undefined }, 401],
    ["a malformed signature", { "x-skein-signature": "sha256=abc" }, 401],
    ["an old timestamp", { "x-skein-timestamp": "1000" }, 401],
    ["a malformed message ID", { "x-skein-message-id": "{" }, 400],
    [
      "a declared length over the limit",
      { "transfer-encoding": undefined, "content-length": "999999999" },
      413,
    ],
  ] as const)("[BDY6] is not awaited if the message has %s", async (_, headers, status) => {
    // Not a byte of the body is sent.
    const message = new TinyChunks("/channels/desk/inbound", { ...signed(), ...headers });
    expect(await message.status()).toBe(status);
    message.socket.destroy();
  });
});

describe("a message in fragments of one byte", () => {
  test("[BDY5] closes its socket with 1008, and the gateway continues", async () => {
    const ws = new WebSocket(new URL("/ws", url));
    await once(ws, "open");
    const params = { protocol: { min: 1, max: 1 }, auth: { token }, client: { name: "test" } };
    ws.send(JSON.stringify({ type: "req", id: "1", method: "connect", params }));
    await once(ws, "message");
    const closed = once(ws, "close");
    ws.on("error", () => undefined);
    for (let count = 0; count < 20_000 && ws.readyState === ws.OPEN; count += 1) ws.send(" ", { fin: false });
    expect((await closed)[0]).toBe(1008);
    await expectAlive();
  });
});

describe("a line on stdio", () => {
  test("[BDY8] of more than 25 MiB ends `skein mcp` with the reason", async () => {
    const mcp = startCli(join(folder.path, "root"), "mcp");
    // After this much data, the process stops reading, and the write fails.
    mcp.child.stdin?.write(Buffer.alloc(25 * 1024 * 1024 + 1, 32));
    expect(await mcp.end()).not.toBe(0);
    expect(mcp.err).toContain("The request is larger than 26214400 bytes.");
  });
});
