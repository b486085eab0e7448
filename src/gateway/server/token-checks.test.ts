import { once } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { connectParams, eventually, gatewayStarter } from "../../../test/support/gateway-server.ts";
import { openBooks } from "../../../test/support/token-books.ts";
import type { ScriptEngine } from "../../core/script.ts";
import { closeCodes } from "../../protocol/frames.ts";
import { SqliteEngine } from "../../store/sqlite-engine.ts";
import { Tokens } from "../auth/tokens.ts";
import { TokenWatch } from "./token-watch.ts";

const start = gatewayStarter();
const reader = { name: "r", scopes: ["read"], user: null } as const;

/** Tokens in a database over a network. While it is slow, each read waits for the test. */
function networkTokens() {
  const ledger = openBooks();
  const inner = new SqliteEngine(ledger);
  const waiting: (() => void)[] = [];
  const slow = { is: false };
  let [marks, reads] = [0, 0];
  const engine: ScriptEngine = {
    read: async (script) => {
      reads += 1;
      if (slow.is) await new Promise<void>((resolve) => waiting.push(resolve));
      return inner.read(script);
    },
    change: (...given) => inner.change(...given),
    changeEach: (changes) => inner.changeEach(changes),
    version: () => inner.version(),
    watch: () => inner.watch(),
    mark: () => String(++marks),
    fenceStep: () => inner.fenceStep(),
  };
  return { tokens: new Tokens({ engine, ledger }), slow, waiting, reads: () => reads };
}

describe("while the database is slow,", () => {
  const handlers = { "agents.list": async () => ({ count: 0, agents: [] }) } as never;

  test("[ATG3] requests on a socket start in the order in which they were sent", async () => {
    const { tokens, slow, waiting } = networkTokens();
    const gateway = await start({ handlers, parts: { tokens } });
    const socket = await gateway.connected((await tokens.create(reader, null)).secret);
    slow.is = true;
    const answers = Array.from({ length: 4 }, () => socket.request("agents.list", {}));
    for (let answered = 1; answered <= answers.length; answered += 1) {
      await eventually(() => waiting.length).toBeGreaterThan(0);
      // By then, the other requests have arrived too.
      await gateway.get("/healthz", null);
      waiting.pop()?.();
      await eventually(() => socket.frames.length).toBe(1 + answered);
    }
    expect(socket.frames.map(({ id }) => id)).toEqual(["r1", "r2", "r3", "r4", "r5"]);
    expect(await Promise.all(answers)).toMatchObject(answers.map(() => ({ ok: true })));
  });

  test("[ATG3] requests that follow connect wait until the token is read", async () => {
    const { tokens, slow, waiting } = networkTokens();
    const gateway = await start({ handlers, parts: { tokens }, tuning: { connectBytes: 20_000 } });
    const { secret } = await tokens.create(reader, null);
    slow.is = true;
    const socket = await gateway.socket();
    const raw = (socket.ws as unknown as { _socket: Socket })._socket;
    // Both arrive in the same chunk.
    raw.cork();
    const connected = socket.request("connect", connectParams(secret));
    const padded = socket.request("agents.list", { padding: "x".repeat(30_000) });
    raw.uncork();
    await eventually(() => waiting.length).toBe(1);
    await gateway.get("/healthz", null);
    slow.is = false;
    waiting.pop()?.();
    expect(await connected).toMatchObject({ ok: true });
    expect(await padded).toMatchObject({ ok: false, error: { code: "invalid_request" } });
    expect(await socket.request("agents.list", {})).toMatchObject({ ok: true });
  });

  test("a request whose client has left is no longer counted", async () => {
    const { tokens, slow, waiting } = networkTokens();
    const gateway = await start({ handlers, parts: { tokens }, tuning: { requestsPerToken: 1 } });
    const { secret } = await tokens.create(reader, null);
    slow.is = true;
    const body = "{}";
    const headers = `Host: localhost\r\nAuthorization: Bearer ${secret}\r\nContent-Type: application/json\r\n`;
    const { socket } = await gateway.raw(
      `POST /rpc/agents.list HTTP/1.1\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    await eventually(() => waiting.length).toBe(1);
    socket.resetAndDestroy();
    await once(socket, "close");
    for (let turn = 0; turn < 5; turn += 1) await gateway.get("/healthz", null);
    slow.is = false;
    waiting.pop()?.();
    await eventually(async () => (await gateway.rpc("agents.list", {}, secret)).status).toBe(200);
  });

  test("[ATG3] the tokens of all sockets and streams are checked with one read, and not again meanwhile", async () => {
    const { tokens, slow, waiting, reads } = networkTokens();
    const gateway = await start({ handlers, parts: { tokens } });
    const made = await Promise.all([1, 2, 3].map(() => tokens.create(reader, null)));
    const sockets = await Promise.all(made.map(({ secret }) => gateway.connected(secret)));
    const stream = await gateway.get("/events", made[0]?.secret);
    await tokens.revoke(made[0]?.token.tokenId ?? "");
    const before = reads();
    slow.is = true;
    for (let tick = 0; tick < 3; tick += 1) gateway.timers.fire(1000);
    expect([reads() - before, waiting.length]).toEqual([1, 1]);
    slow.is = false;
    waiting.pop()?.();
    expect((await sockets[0]?.closed)?.code).toBe(closeCodes.revoked.code);
    await stream.text();
    expect(await sockets[1]?.request("agents.list", {})).toMatchObject({ ok: true });
    gateway.timers.fire(1000);
    expect(await sockets[2]?.request("agents.list", {})).toMatchObject({ ok: true });
  });
});

test("[ATG3] a socket or request that has ended is not ended again", async () => {
  const watch = new TokenWatch(async (tokenIds) => new Set(tokenIds));
  const ended: string[] = [];
  const principal = { tokenId: "t", expiresAt: null, ...reader };
  const leave = watch.add(principal, () => ended.push("left"));
  watch.add(principal, () => ended.push("open"));
  leave();
  leave();
  await watch.recheck();
  expect(ended).toEqual(["open"]);
});
