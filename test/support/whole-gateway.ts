import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCli } from "../../src/cli/main.ts";
import type { Params, Result, SkeinClient } from "../../src/entry-client.ts";
import { connect } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { silentTerminal } from "./cli.ts";
import { storeEnv } from "./empty-store.ts";

/** `skein start` in this process, on its own folder and port. */
export interface WholeGateway {
  readonly url: string;
  readonly root: string;
  /** The folder's admin token. */
  readonly admin: string;
  /** Returns a token with these permissions. */
  token(request: Params<"tokens.create">): Promise<string>;
  rpc(
    method: string,
    params?: unknown,
    token?: string | null,
  ): Promise<{ readonly status: number; readonly body: unknown }>;
  client(token?: string): Promise<SkeinClient>;
  /** Stops the gateway but keeps its clients and its folder. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

export interface WholeOptions {
  /** The text of `skein.yaml`. The rehearsal model answers in any case. */
  readonly config?: string;
  readonly folder?: TemporaryFolder;
}

export async function wholeGateway(options: WholeOptions = {}): Promise<WholeGateway> {
  const { config = "", folder } = options;
  const home = folder ?? temporaryFolder("skein-gateway-");
  const root = join(home.path, "root");
  configure(home.path, config);
  const started = await startInProcess(home.path, root);
  return describeGateway({ ...started, root, remove: () => void (folder === undefined && home.remove()) });
}

export function configure(home: string, config: string): void {
  const defaults = /^"?defaults"?:/m.test(config) ? "" : "defaults: { model: rehearsal/basic }\n";
  const logging = /^logging:/m.test(config) ? "" : `logging: { level: error, file: ${join(home, "log")} }\n`;
  const usual = `${defaults}${logging}`;
  writeFileSync(join(home, "skein.yaml"), usual + config);
}

interface StartedGateway {
  readonly url: string;
  readonly root: string;
  stop(): Promise<void>;
  remove(): void;
}

export function describeGateway({ url, root, stop, remove }: StartedGateway): WholeGateway {
  const admin = readFileSync(join(root, "token"), "utf8").trim();
  const clients: SkeinClient[] = [];
  const rpc: WholeGateway["rpc"] = async (method, params = {}, token = admin) => {
    const answer = await fetch(`${url}/rpc/${method}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(params),
    });
    return { status: answer.status, body: await answer.json() };
  };
  return {
    url,
    root,
    admin,
    rpc,
    token: async (request) => {
      const { body } = await rpc("tokens.create", request);
      return (body as Result<"tokens.create">).token;
    },
    client: async (token = admin) => {
      const client = await connect(url, { token });
      clients.push(client);
      return client;
    },
    stop,
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await stop();
      remove();
    },
  };
}

async function startInProcess(cwd: string, root: string): Promise<{ url: string; stop(): Promise<void> }> {
  const started = Promise.withResolvers<string>();
  let printed = "";
  let requestStop: (why: string) => void = () => undefined;
  const ended = runCli(["start", "--dir", root, "--port", "0", "--json"], "0.0.0", {
    ...silentTerminal(cwd),
    env: { HOME: cwd, ...(await storeEnv(root)) },
    home: cwd,
    out: (text) => started.resolve(text),
    err: (text) => {
      printed += text;
    },
    signals: {
      onStop: (stop) => {
        requestStop = stop;
        return () => undefined;
      },
      onReload: () => () => undefined,
      exit: () => undefined,
      graceMs: 0,
    },
  });
  void ended.then((exit) => started.reject(new Error(`skein start ended with ${exit}: ${printed}`)));
  const { url, wasRunning } = JSON.parse(await started.promise) as { url: string; wasRunning: boolean };
  if (wasRunning) throw new Error("another gateway is running for this folder");
  return {
    url,
    stop: async () => {
      requestStop("the test");
      await ended;
    },
  };
}
