import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { connect } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { Started } from "../support/cli-process.ts";
import { skeinProgram } from "../support/programs.ts";
import { findRunning } from "../support/running-gateway.ts";

/** An idle gateway uses about 35. */
const openFiles = 72;
const sessionCount = 60;

let folder: TemporaryFolder;
let gateway: Started;
let url: URL;
let token: string;
const idle: Socket[] = [];

beforeEach(async () => {
  folder = temporaryFolder();
  const dir = join(folder.path, "root");
  writeFileSync(join(folder.path, "skein.yaml"), "defaults: { model: rehearsal/basic }\n");
  gateway = new Started(
    [skeinProgram, "start", "--port", "0"],
    { SKEIN_DIR: dir, SKEIN_LOGGING__LEVEL: "silent", npm_lifecycle_event: "" },
    { cwd: folder.path, openFiles },
  );
  await gateway.until(/Press Ctrl-C to stop it/);
  url = new URL(findRunning(dir)?.url ?? "");
  token = readFileSync(join(dir, "token"), "utf8").trim();
});

afterEach(async () => {
  for (const socket of idle.splice(0)) socket.destroy();
  gateway.child.kill("SIGKILL");
  await gateway.end();
  folder.remove();
});

/** A connection that stays open after one response. */
async function idleConnection(): Promise<void> {
  const socket = connect(Number(url.port), url.hostname);
  idle.push(socket);
  socket.on("error", () => undefined);
  socket.write(`GET /healthz HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`);
  await Promise.race([once(socket, "data"), once(socket, "close")]).catch(() => undefined);
}

/** Returns a method's result once the gateway accepts the connection and has capacity for the call. */
async function call(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
  for (;;) {
    try {
      const answer = await fetch(new URL(`/rpc/${method}`, url), {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
        body: JSON.stringify(params),
      });
      const body = (await answer.json()) as Readonly<Record<string, unknown>>;
      if (answer.ok) return body;
      const { error } = body as { readonly error: { readonly retryable?: boolean } };
      if (error.retryable !== true) throw Object.assign(new Error(JSON.stringify(error)), { isFinal: true });
    } catch (error) {
      if ((error as { readonly isFinal?: boolean }).isFinal === true || gateway.child.exitCode !== null)
        throw error;
    }
  }
}

describe("a gateway with few file descriptors", () => {
  test("[BDY10] answers every accepted message despite many idle connections", async () => {
    const keys = Array.from({ length: sessionCount }, (_, index) => `agent:main:s${index}`);
    const runIds: string[] = [];
    for (const [index, sessionKey] of keys.entries()) {
      if (index < 40) await idleConnection();
      const params = { sessionKey, message: `say ${index}`, idempotencyKey: `k${index}` };
      runIds.push(String((await call("agent", params)).runId));
    }
    const outcomes = [];
    for (const runId of runIds) {
      let outcome = await call("agent.wait", { runId, timeoutMs: 10_000 });
      while (outcome.finished !== true) outcome = await call("agent.wait", { runId, timeoutMs: 10_000 });
      outcomes.push(outcome.state);
    }
    expect(outcomes).toEqual(keys.map(() => "ok"));
    expect(idle.some(({ destroyed, readableEnded }) => destroyed || readableEnded)).toBe(true);
  });
});
