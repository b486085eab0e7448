// npm run cluster: starts PostgreSQL and three gateways behind a balancer, with the sample sessions of npm start. Everything
// is in temporary folders, which are deleted when it stops.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { configNames } from "../src/config/find-file.ts";
import { thrownText } from "../src/core/text.ts";
import { ServerKeeper } from "../test/support/postgres-broker.ts";
import { DatabaseServer, migrator } from "../test/support/postgres-server.ts";
import { Balancer } from "./balancer.ts";
import { buildStaleConsole } from "./build-console.ts";
import { makeFamily } from "./sample-family.ts";
import { root } from "./steps.ts";
import { SupervisedGateway } from "./supervised-gateway.ts";

const gatewayCount = 3;
const help = `npm run cluster -- [--port <number>]

Starts a PostgreSQL server and ${gatewayCount} gateways that share it, behind a balancer, with the sample sessions of npm start.
Prints a link to the console. Ctrl-C stops everything and deletes its data.

  --port <number>   the balancer's port; if it is in use, the next free one (default: 18790)
`;

const say = (line: string) => console.log(line);

/** A database server, the gateways that share it, and the balancer in front of them. */
class Cluster {
  readonly #folder = mkdtempSync(join(tmpdir(), "skein-cluster-"));
  readonly #keeper = new ServerKeeper({ isPrivate: process.platform !== "win32" });
  #balancer: Balancer | null = null;
  #gateways: readonly SupervisedGateway[] = [];
  #isClosed = false;

  async open(port: number): Promise<void> {
    say("Starting PostgreSQL …");
    const store = await this.#createDatabase();
    say("Creating the sample sessions …");
    const family = join(this.#folder, "family");
    await makeFamily(family, { say: () => undefined, store });
    const balancer = await Balancer.start(port);
    this.#balancer = balancer;
    if (this.#isClosed) return;
    say(`Starting ${gatewayCount} gateways …`);
    this.#gateways = Array.from({ length: gatewayCount }, (_, at) => this.#gateway(at + 1, family, store));
    await Promise.all(this.#gateways.map((gateway) => gateway.start()));
    this.#balance();
    this.#print(balancer.url, store);
  }

  /** A second call stops the gateways without waiting for their runs. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#gateways.map((gateway) => gateway.stop()));
    const balancer = this.#balancer;
    this.#balancer = null;
    await balancer?.close();
    await this.#keeper.stop();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }

  async #createDatabase(): Promise<string> {
    const kept = await this.#keeper.server;
    if ("missing" in kept) throw new Error(`PostgreSQL cannot run here: ${kept.missing}`);
    const server = new DatabaseServer(kept.port, kept.socket);
    await server.createRoles();
    return (await server.createDatabase()).url(migrator);
  }

  /** Each gateway has a separate root folder, as on a separate machine. */
  #gateway(number: number, family: string, store: string): SupervisedGateway {
    const dir = join(this.#folder, `gateway-${number}`);
    const config = join(family, configNames[0] ?? "");
    return new SupervisedGateway({
      name: `gateway ${number}`,
      args: ["--dir", dir, "--config", config, "--port", "0"],
      cwd: family,
      env: { ...process.env, SKEIN_DIR: "", SKEIN_STORE: store },
      say,
      onChange: () => this.#balance(),
    });
  }

  #balance(): void {
    if (this.#balancer === null) return;
    this.#balancer.ports = this.#gateways.flatMap(({ address }) =>
      address === null ? [] : [Number(new URL(address.url).port)],
    );
  }

  #print(url: string, store: string): void {
    say("");
    for (const { name, address } of this.#gateways)
      say(`  ${name}   ${address?.url}   process ${address?.pid}`);
    say(`  database    ${store}`);
    say(`  balancer    ${url}`);
    // The code is in the database, so every gateway accepts it.
    const code = new URL(this.#gateways[0]?.address?.link ?? url).hash;
    say(`  link        ${url}/${code}`);
    say("              open it in a browser within ten minutes; it works once\n");
    say(
      "To see another gateway take over the runs of one that fails, run kill -9 with the process ID of a gateway.",
    );
    say("Press Ctrl-C to stop everything and delete its data.");
  }
}

async function run(): Promise<void> {
  const options = { port: { type: "string", default: "18790" }, help: { type: "boolean" } } as const;
  const { values } = parseArgs({ options });
  if (values.help === true) return say(help);
  if (!/^\d{1,5}$/.test(values.port)) throw new Error("--port must be a number from 0 to 65535.");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  say(`Skein ${version}\n`);
  await buildStaleConsole(say);
  const cluster = new Cluster();
  const stopped = Promise.withResolvers<void>();
  let isStopping = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      if (isStopping) return void cluster.close();
      isStopping = true;
      say("Stopping; a second signal does not wait for runs.");
      stopped.resolve();
    });
  try {
    const opened = cluster.open(Number(values.port));
    opened.catch(() => undefined);
    await Promise.race([opened, stopped.promise]);
    await stopped.promise;
  } finally {
    await cluster.close();
  }
}

try {
  await run();
  // Connections of a start that was interrupted might still be open.
  process.exit(0);
} catch (error) {
  console.error(`error: ${thrownText(error)}`);
  process.exit(1);
}
