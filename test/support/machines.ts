import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "vitest";
import type { ReceivedEvent, SkeinClient } from "../../src/entry-client.ts";
import { connect } from "../../src/entry-client.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { GatewayStart } from "./gateway-process.ts";
import { GatewayProcess } from "./gateway-process.ts";
import type { TestDatabase } from "./postgres-server.ts";
import { migrator, serverFor } from "./postgres-server.ts";

const basic = "agents: { main: {} }\ndefaults: { model: rehearsal/basic }\nlogging: { level: warn }\n";

/** Processes that share a PostgreSQL database, each with a root folder of its own, as on different machines. */
export class Machines {
  readonly folder = temporaryFolder();
  readonly database: TestDatabase;
  readonly #processes = new Set<GatewayProcess>();
  readonly #clients = new Set<SkeinClient>();

  /** Skips the test if PostgreSQL is missing. */
  static async open(context: TestContext): Promise<Machines> {
    const server = await serverFor(context);
    await server.createRoles();
    return new Machines(await server.createDatabase());
  }

  private constructor(database: TestDatabase) {
    this.database = database;
  }

  /** The configuration file contains the address of the database, unless it is an option for `skein start`. */
  async start(name: string, { config = basic, ...more }: GatewayStart = {}): Promise<GatewayProcess> {
    const home = join(this.folder.path, name);
    mkdirSync(home, { recursive: true });
    const isOption = more.args?.includes("--store") === true;
    const store = isOption ? "" : `store: ${JSON.stringify(this.database.url(migrator))}\n`;
    const process = await GatewayProcess.start(home, { config: config + store, ...more });
    this.#processes.add(process);
    return process;
  }

  /** Waits until the process has exited. */
  async stop(process: GatewayProcess, signal?: NodeJS.Signals): Promise<void> {
    this.#processes.delete(process);
    await process.stop(signal);
  }

  async connect({ url }: Pick<GatewayProcess, "url">, token: string): Promise<SkeinClient> {
    const client = await connect(url, { token });
    this.#clients.add(client);
    return client;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.close()));
    await Promise.all([...this.#processes].map((process) => process.stop()));
    this.folder.remove();
    await this.database.drop();
  }
}

/** Collects the events of a session, from before `act` until one of the type `last` arrives. */
export async function eventsUntil(
  client: SkeinClient,
  key: string,
  last: string,
  act: () => Promise<unknown>,
): Promise<ReceivedEvent[]> {
  const events: ReceivedEvent[] = [];
  const stream = client.events({ keys: [key] });
  await stream.ready;
  const acting = act();
  for await (const event of stream) {
    events.push(event);
    if (event.event === last) break;
  }
  await acting;
  return events;
}
