import type { ChildProcess } from "node:child_process";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connect } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const deploy = join(import.meta.dirname, "../../deploy");
let gateway: WholeGateway;
let folder: TemporaryFolder;
let proxy: ChildProcess | null = null;

beforeEach(async () => {
  folder = temporaryFolder("skein-proxy-");
  gateway = await wholeGateway({ config: "gateway: { trustProxy: [127.0.0.1] }\n" });
});

afterEach(async () => {
  if (proxy !== null && proxy.exitCode === null) {
    proxy.kill("SIGKILL");
    await once(proxy, "exit");
  }
  proxy = null;
  await gateway.close();
  folder.remove();
});

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

const file = (name: string) => join(folder.path, name);
const upstream = () => new URL(gateway.url).host;

/** The shipped file, without TLS and for this gateway, inside the smallest main configuration. */
function nginxConfig(port: number): string {
  const shipped = readFileSync(join(deploy, "nginx.conf"), "utf8")
    .replace("listen 443 ssl", `listen 127.0.0.1:${port}`)
    .replaceAll(/^\s*ssl_.*$/gm, "")
    .replace("127.0.0.1:18790", upstream());
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const paths = temporary.map((name) => `${name}_temp_path ${file(name)};`).join(" ");
  return `daemon off; master_process off; pid ${file("pid")}; error_log ${file("errors")};\nevents {}\nhttp { access_log off; ${paths}\n${shipped}\n}\n`;
}

function caddyConfig(port: number): string {
  const shipped = readFileSync(join(deploy, "Caddyfile"), "utf8")
    .replace(/^skein\.example\.org \{$/m, `http://127.0.0.1:${port} {`)
    .replace("127.0.0.1:18790", upstream());
  return `{\n\tadmin off\n\tauto_https off\n}\n${shipped}`;
}

/** Starts the proxy and waits until it forwards. Skips the test if the program is not installed. */
async function startProxy(context: TestContext, name: "nginx" | "caddy"): Promise<string> {
  const versionOption = name === "nginx" ? "-v" : "version";
  if (spawnSync(name, [versionOption], { stdio: "ignore" }).status !== 0)
    return context.skip(`${name} is not installed`);
  const port = await findFreePort();
  const config = file(`${name}.conf`);
  writeFileSync(config, name === "nginx" ? nginxConfig(port) : caddyConfig(port));
  mkdirSync(file("home"));
  const args =
    name === "nginx"
      ? ["-e", file("errors"), "-p", folder.path, "-c", config]
      : ["run", "--config", config, "--adapter", "caddyfile"];
  proxy = spawn(name, args, { stdio: "ignore", env: { ...process.env, HOME: file("home") } });
  const url = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(answers).toBe(true);
  return url;
}

/** Reads `/events` until an event with this name has arrived. With a buffering proxy it would never arrive. */
async function readEvent(url: string, name: string, isOpen: () => Promise<unknown>): Promise<void> {
  const abort = new AbortController();
  const headers = { authorization: `Bearer ${gateway.admin}` };
  const answer = await fetch(`${url}/events`, { headers, signal: abort.signal });
  expect(answer.headers.get("content-type")).toContain("text/event-stream");
  await isOpen();
  let text = "";
  for await (const chunk of answer.body ?? []) {
    text += new TextDecoder().decode(chunk);
    if (text.includes(`event: ${name}\n`)) break;
  }
  abort.abort();
  expect(text).toContain(`event: ${name}\n`);
}

test.for(["nginx", "caddy"] as const)(
  "[DPL2] %s with the shipped configuration forwards the page, calls, sockets and events",
  async (name, context) => {
    const url = await startProxy(context, name);
    const readPage = async (from: string) => (await fetch(`${from}/`)).text();
    expect(await readPage(url)).toBe(await readPage(gateway.url));

    const client = await connect(url, { token: gateway.admin });
    try {
      const stream = client.events({ keys: ["main"], events: ["run.*"] });
      await stream.ready;
      const ask = (idempotencyKey: string) =>
        client.call("chat.send", { sessionKey: "main", message: "list the sessions", idempotencyKey });
      await ask("socket");
      for await (const { event } of stream) if (event === "run.ended") break;
      await readEvent(url, "run.ended", () => ask("stream"));
    } finally {
      await client.close();
    }
    // Larger than both proxies accept by default, because of white space.
    const params = { sessionKey: "main", message: "list the sessions", idempotencyKey: "long" };
    const body = JSON.stringify(params) + " ".repeat(2_000_000);
    const headers = { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" };
    const long = await fetch(`${url}/rpc/chat.send`, { method: "POST", headers, body });
    expect(await long.json()).toMatchObject({ status: "accepted" });
  },
);
