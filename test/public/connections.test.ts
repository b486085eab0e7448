import { afterEach, beforeEach, expect, test } from "vitest";
import type { Params, SkeinClient } from "../../src/entry-client.ts";
import { eventsUntil, Machines } from "../support/machines.ts";
import type { DatabaseServer } from "../support/postgres-server.ts";
import { serverFor } from "../support/postgres-server.ts";
import { repetitions } from "../support/repetitions.ts";

let machines: Machines;
let server: DatabaseServer;

beforeEach(async (context) => {
  server = await serverFor(context);
  machines = await Machines.open(context);
});

afterEach(() => machines?.close());

async function countConnections(): Promise<number> {
  const text = `SELECT count(*)::int AS count FROM pg_stat_activity
    WHERE datname = '${machines.database.name}' AND application_name = 'skein'`;
  const [answer] = await server.administer("postgres", text);
  return Number(answer?.rows[0]?.count);
}

const keyOf = (index: number) => `agent:main:session:s${index}`;

test("[MCH9] ten connections and one for notifications serve any number of clients", async () => {
  const gateway = await machines.start("a");
  const numbers = Array.from({ length: repetitions.pooledClients }, (_, index) => index);
  // A token can have only a limited number of sockets.
  const connectUser = async (index: number) => {
    const asked: Params<"tokens.create"> = { userId: `user-${index}`, scopes: ["read", "write"] };
    return machines.connect(gateway, (await gateway.call("tokens.create", asked)).token);
  };
  const clients: SkeinClient[] = [];
  // One after the other, because a token can also send only a limited number of requests per second.
  for (const index of numbers) clients.push(await connectUser(index));
  const counts: number[] = [];
  const ask = async (client: SkeinClient, index: number) => {
    const asked = { sessionKey: keyOf(index), message: `Message ${index}`, idempotencyKey: "1" };
    const events = await eventsUntil(client, keyOf(index), "run.ended", () =>
      client.call("chat.send", asked),
    );
    if (index % 10 === 0) counts.push(await countConnections());
    return events.flatMap((event) => (event.event === "run.ended" ? [event.payload.state] : []));
  };
  expect(await Promise.all(clients.map(ask))).toEqual(numbers.map(() => ["ok"]));
  expect(Math.min(...counts)).toBeGreaterThan(0);
  expect(Math.max(...counts)).toBeLessThanOrEqual(11);
});
