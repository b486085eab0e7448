import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { newClient } from "../../../test/support/mcp-client.ts";
import type { SmallPieces } from "../../../test/support/small-gateway.ts";
import { smallPieces } from "../../../test/support/small-gateway.ts";
import { gatewayPieces } from "../../app/gateway.ts";
import type { Principal } from "../../gateway/auth/principal.ts";
import type { Call } from "../../gateway/methods/dispatch.ts";
import { runningPath } from "../../gateway/running-file.ts";
import { realDisk } from "../../store/files/disk.ts";
import type { TemporaryFolder } from "../../testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import type { AlreadyRunning, OpenGateway } from "./open-gateway.ts";
import { openGateway } from "./open-gateway.ts";

let folder: TemporaryFolder;
let dir: string;
let file: string;
let logFile: string;
let pieces: SmallPieces;
const opened: OpenGateway[] = [];
const others: Server[] = [];

const config = (agents: string, more = "") =>
  `agents: { ${agents} }\ndefaults: { model: rehearsal/basic }\nlogging: { level: info, file: ${logFile} }\n${more}`;

beforeEach(() => {
  folder = temporaryFolder();
  dir = join(folder.path, "root");
  file = join(folder.path, "skein.yaml");
  logFile = join(folder.path, "log");
  writeFileSync(file, config("main: {}"));
  pieces = smallPieces();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((gateway) => gateway.close(0)));
  for (const server of others.splice(0)) await new Promise((resolve) => server.close(resolve));
  folder.remove();
});

const where = () => ({ cwd: folder.path, root: dir, env: { HOME: folder.path } });

async function open(
  overrides: object = { port: 0 },
  more: object = {},
): Promise<OpenGateway | AlreadyRunning> {
  const gateway = await openGateway({ where: where(), overrides, version: "1.2.3", pieces, ...more });
  if (gateway.isMine) opened.push(gateway);
  return gateway;
}

async function mine(more: object = {}): Promise<OpenGateway> {
  const gateway = await open({ port: 0 }, more);
  if (!gateway.isMine) throw new Error("another one runs");
  return gateway;
}

async function call(url: string, method: string, params: unknown = {}) {
  const secret = readFileSync(join(dir, "token"), "utf8").trim();
  const answer = await fetch(`${url}/rpc/${method}`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}` },
    body: JSON.stringify(params),
  });
  return (await answer.json()) as {
    ok: boolean;
    payload: { effective?: string };
    error: { code: string };
    code: string;
  };
}

const admin: Principal = { tokenId: "a", name: "a", scopes: ["read", "write"], user: null, expiresAt: null };

/** Returns the result of `agents_list` over MCP. */
async function overMcp(handle: (request: Request) => Promise<Response>): Promise<unknown> {
  const client = newClient("2026-07-28");
  const fetch = (url: string | URL, init?: RequestInit) => handle(new Request(url, init));
  await client.connect(new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), { fetch }));
  const { structuredContent } = await client.callTool({ name: "agents_list", arguments: {} });
  await client.close();
  return structuredContent;
}

const errorCodeOf = (link: string) => new URL(link).hash.replace("#code=", "");
const logged = () => (existsSync(logFile) ? readFileSync(logFile, "utf8") : "");

describe("starting a gateway", () => {
  test("[GST1] creates the admin token, and a link whose code works once and is not sent to the server", async () => {
    const gateway = await mine();
    expect(gateway).toMatchObject({ isFirst: true, root: dir });
    expect(statSync(join(dir, "token")).mode & 0o777).toBe(0o600);
    const link = gateway.link ?? "";
    expect(new URL(link)).toMatchObject({ origin: gateway.url, pathname: "/", search: "" });
    const given = await pieces.parts?.exchange(errorCodeOf(link));
    expect(given?.token).toMatchObject({ name: "console" });
    expect(await pieces.parts?.exchange(errorCodeOf(link))).toBe(null);
    expect(await call(gateway.url, "agents.list")).toEqual({ ok: true, payload: ["main"] });
    expect(logged()).toContain("gateway started");
    expect(logged()).not.toContain(readFileSync(join(dir, "token"), "utf8").trim());
  });

  test("[GST2] a second gateway gets the address of the first, and its own link", async () => {
    const first = await mine();
    const second = await open();
    if (second.isMine) throw new Error("two run");
    expect(second.running).toMatchObject({ url: first.url, pid: process.pid, isElsewhere: false });
    expect(second.link).not.toBe(first.link);
    expect(await pieces.parts?.exchange(errorCodeOf(second.link))).not.toBe(null);
    await first.close(0);
    expect((await open()).isMine).toBe(true);
  });

  test("[GST2] of several at once one wins, and the others open no Skein", async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => open()));
    const winners = all.filter(({ isMine }) => isMine);
    expect(winners).toHaveLength(1);
    const urls = all.map((each) => (each.isMine ? each.url : each.running.url));
    expect(new Set(urls).size).toBe(1);
    expect(pieces.opened).toHaveLength(1);
  });

  test("[GST2] waits for a gateway that has the port but is not announced yet, and uses it", async () => {
    const gate = Promise.withResolvers<void>();
    const listening = Promise.withResolvers<string>();
    const { listen } = smallPieces();
    pieces = smallPieces({
      listen: async (parts) => {
        const server = await listen(parts);
        listening.resolve(server.url);
        await gate.promise;
        return server;
      },
    });
    const first = open();
    const url = await listening.promise;
    pieces = smallPieces({
      listen: (parts) =>
        listen(parts).catch((error: unknown) => {
          setTimeout(gate.resolve, 100);
          throw error;
        }),
    });
    const second = await open({ port: Number(new URL(url).port) });
    expect(second).toMatchObject({ isMine: false, running: { url } });
    expect((await first).isMine).toBe(true);
  });

  test("[GST2] until it is confirmed as the only one, calls are unavailable and it is not ready", async () => {
    const seen: unknown[] = [];
    const { listen } = pieces;
    pieces = smallPieces({
      listen: async (parts) => {
        const server = await listen(parts);
        seen.push((await fetch(`${server.url}/readyz`)).status, await call(server.url, "agents.list"));
        return server;
      },
    });
    const { url } = await mine();
    expect(seen).toMatchObject([503, { ok: false, error: { code: "unavailable" } }]);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  test("a port used by another program is reported with a remedy, and nothing is left behind", async () => {
    const other = createServer((socket) => socket.destroy());
    others.push(other);
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    await expect(open({ port })).rejects.toThrow(
      `Port ${port} on 127.0.0.1 is in use by another program. Stop it, or use a different port: --port`,
    );
    expect(existsSync(runningPath(dir))).toBe(false);
    // The messages are the same when all parts are real.
    await expect(open({ port }, { pieces: gatewayPieces })).rejects.toThrow(
      `Port ${port} on 127.0.0.1 is in use by another program. Stop it, or use a different port: --port`,
    );
    expect((await open()).isMine).toBe(true);
  });

  test("listening on a public address requires an explicit option", async () => {
    await expect(open({ port: 0, host: "0.0.0.0" })).rejects.toThrow(/--expose/);
    await expect(open({ port: 0, host: "192.0.2.1", expose: true })).rejects.toThrow(
      "192.0.2.1 is not an address of this machine.",
    );
  });
});

describe("stopping a gateway", () => {
  test("[GST4] refuses new calls, waits for running ones, and releases the folder", async () => {
    const gateway = await mine();
    const sent = await call(gateway.url, "chat.send", {
      sessionKey: "agent:main:main",
      message: "hello",
      idempotencyKey: "a",
    });
    expect(sent.ok).toBe(true);
    const closing = gateway.close();
    await expect.poll(() => logged()).toContain("gateway stopping");
    const refused = await call(gateway.url, "agents.list").catch(() => ({ code: "unavailable" }));
    expect(refused.code).toBe("unavailable");
    expect(await closing).toBe(true);
    expect(await gateway.close()).toBe(true);
    expect(existsSync(runningPath(dir))).toBe(false);
    await expect(fetch(gateway.url)).rejects.toThrow();
    expect(logged()).toContain("gateway stopped");
    // Accepted input gets an answer, from this gateway or the next one.
    const next = await mine();
    const { skein } = pieces.opened.at(-1) ?? {};
    const states = async () => (await skein?.runs.list())?.map(({ state }) => state);
    await expect.poll(states).toEqual(["ok"]);
    expect(next.url).not.toBe("");
  });
});

describe("stopping during other work", () => {
  test("during maintenance: accepts nothing from that moment on", async () => {
    const [begun, held] = [Promise.withResolvers<AbortSignal>(), Promise.withResolvers<void>()];
    const { handlers } = smallPieces();
    const slow = async (_: unknown, { signal }: Call) => {
      begun.resolve(signal);
      await held.promise;
      return { mode: "warn", decisions: [], done: [] };
    };
    pieces = smallPieces({ handlers: (deps) => ({ ...handlers(deps), "maintenance.run": slow as never }) });
    const gateway = await mine({ upkeepAfterMs: 0 });
    const signal = await begun.promise;
    const closing = gateway.close();
    const refused = await call(gateway.url, "agents.list").catch(() => ({ code: "unavailable" }));
    held.resolve();
    expect({ code: refused.code, isTold: signal.aborted }).toEqual({ code: "unavailable", isTold: true });
    expect(await closing).toBe(true);
  });

  test("reports a gateway.json that cannot be removed, and releases the port and the folder", async () => {
    const gateway = await mine();
    const unlink = vi.spyOn(realDisk, "unlink").mockImplementation((path) => {
      throw new Error(`${path} is held`);
    });
    await expect(gateway.close(0)).rejects.toThrow("gateway.json is held");
    unlink.mockRestore();
    opened.splice(0);
    await expect(fetch(gateway.url)).rejects.toThrow();
    rmSync(runningPath(dir));
    expect((await open()).isMine).toBe(true);
  });
});

describe("a configuration that changes meanwhile", () => {
  const agents = (url: string) => async () => (await call(url, "agents.list")).payload;

  test("between reading and opening: the Skein and its report use the same version", async () => {
    const { listen } = pieces;
    pieces = smallPieces({
      listen: async (parts) => {
        writeFileSync(file, config("main: {}, second: {}"));
        return listen(parts);
      },
    });
    await mine();
    const [first] = pieces.opened;
    const served = (await first?.skein.agents(null))?.map(({ id }) => id);
    expect(served).toEqual(Object.keys(first?.config.agents ?? {}));
    expect(served).toEqual(["main"]);
  });

  test("while it starts: the change is applied as soon as it has started", async () => {
    const { listen } = pieces;
    pieces = smallPieces({
      listen: async (parts) => {
        writeFileSync(file, config("main: {}, second: {}"));
        return listen(parts);
      },
    });
    const { url } = await mine();
    await expect.poll(agents(url)).toEqual(["main", "second"]);
  });

  test("while it reloads: the change is applied after the reload", async () => {
    const { handlers } = smallPieces();
    let opens = 0;
    pieces = smallPieces({
      handlers: (deps) => {
        opens++;
        if (opens === 2) writeFileSync(file, config("main: {}, third: {}"));
        return handlers(deps);
      },
    });
    const { url } = await mine();
    writeFileSync(file, config("main: {}, second: {}"));
    await expect.poll(agents(url)).toEqual(["main", "third"]);
  });
});

describe("reloading", () => {
  const agents = (url: string) => async () => (await call(url, "agents.list")).payload;

  test("[GST7] a changed file is applied, however it was written, and runs continue", async () => {
    const { url } = await mine();
    writeFileSync(file, config("main: {}, second: {}"));
    await expect.poll(agents(url)).toEqual(["main", "second"]);
    const sent = await call(url, "chat.send", {
      sessionKey: "agent:second:main",
      message: "hello",
      idempotencyKey: "a",
    });
    expect(sent.ok).toBe(true);
    writeFileSync(`${file}.new`, config("main: {}, third: {}"));
    renameSync(`${file}.new`, file);
    await expect.poll(agents(url)).toEqual(["main", "third"]);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(pieces.opened).toHaveLength(3);
    expect(new Set(pieces.opened.map(({ skein }) => skein)).size).toBe(3);
  });

  test("[GST7] the .env next to the file is applied too", async () => {
    writeFileSync(file, config("main: {}, other: {}"));
    const { url } = await mine();
    writeFileSync(join(folder.path, ".env"), "SKEIN_AGENTS__OTHER__SYSTEM=be brief\n");
    const effective = async () => String((await call(url, "config.get")).payload.effective);
    await expect.poll(effective).toContain("SKEIN_AGENTS__OTHER__SYSTEM in ");
  });

  test("a pending call is answered by the generation that received it", async () => {
    const held = Promise.withResolvers<void>();
    pieces.hold = held.promise;
    const gateway = await mine();
    const answer = call(gateway.url, "sessions.usage", {});
    await expect.poll(() => pieces.held).toBe(1);
    const old = pieces.opened[0];
    writeFileSync(file, config("main: {}, second: {}"));
    await gateway.reload();
    expect(await call(gateway.url, "agents.list")).toMatchObject({ payload: ["main", "second"] });
    held.resolve();
    expect(await answer).toMatchObject({ ok: true });
    // Once nothing is in progress, the old generation is closed.
    await expect
      .poll(() => old?.skein.runs.list().then(String, (error: Error) => error.message))
      .toMatch(/was closed/);
  });

  test.each(["a message of a channel", "a tool over MCP"])(
    "a pending %s is answered by its generation, which is not closed before",
    async (what) => {
      pieces = smallPieces({ openMcp: gatewayPieces.openMcp });
      const gateway = await mine();
      const { skein } = pieces.opened[0] ?? {};
      const { parts } = pieces;
      if (skein === undefined || parts === null) throw new Error("it is not open");
      const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const closed = vi.spyOn(skein, "close");
      const act = async () => {
        begun.resolve();
        await held.promise;
        return { result: { count: (await skein.runs.list()).length }, rootId: null };
      };
      vi.spyOn(skein, "callTool").mockImplementation(act);
      vi.spyOn(skein, "webhook").mockReturnValue(async () => Response.json((await act()).result));
      const answer =
        what === "a tool over MCP"
          ? overMcp((request) => parts.mcp(request, admin))
          : parts
              .webhook("desk")?.(new Request("http://localhost"))
              .then((response) => response.json());
      await begun.promise;
      await gateway.reload();
      for (let count = 0; count < 20; count++) await call(gateway.url, "agents.list");
      expect(closed).not.toHaveBeenCalled();
      held.resolve();
      expect(await answer).toEqual({ count: 0 });
      await expect.poll(() => closed.mock.calls.length).toBe(1);
    },
  );

  test("[GST8] a file with a mistake changes nothing, and is reported with file and line", async () => {
    const gateway = await mine();
    writeFileSync(file, config("main: {}, second: {}", "lanes: { fast: 1 }\n"));
    await expect.poll(logged).toContain(`${file}:4:10`);
    expect(await agents(gateway.url)()).toEqual(["main"]);
    expect(pieces.opened).toHaveLength(1);
    writeFileSync(file, config("main: {}, second: {}"));
    await expect.poll(agents(gateway.url)).toEqual(["main", "second"]);
    renameSync(file, `${file}.away`);
    await gateway.reload();
    expect(logged()).toContain(`${file} no longer exists`);
    expect(await agents(gateway.url)()).toEqual(["main", "second"]);
  });

  test("[GST8] changes that need a restart are named and not applied; the rest is applied", async () => {
    const gateway = await mine();
    writeFileSync(file, config("second: {}", "gateway: { port: 1, allowedHosts: [a.example] }\n"));
    await gateway.reload();
    expect(await agents(gateway.url)()).toEqual(["second"]);
    expect(logged()).toContain("changes to gateway.port, gateway.allowedHosts take effect after a restart");
    expect(pieces.opened.at(-1)?.config.gateway.port).toBe(18_790);
    expect(pieces.opened.at(-1)?.store.root).toBe(dir);
  });

  test("the gateway's metrics follow those of its Skein, and continue across reloads", async () => {
    const gateway = await mine();
    await call(gateway.url, "agents.list");
    await gateway.reload();
    await call(gateway.url, "agents.list");
    const body = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(body).toContain("skein_runs_open");
    expect(body).toContain('skein_gateway_calls_total{method="agents.list",outcome="ok"} 2\n');
    expect(body).toContain('skein_gateway_reloads_total{outcome="done"} 1\n');
    expect(body).toContain("skein_gateway_subscriptions 0\n");
    for (const name of ["events_sent", "events_dropped", "readers_dropped"]) {
      expect(body).toContain(`skein_gateway_${name}_total 0\n`);
    }
  });
});
