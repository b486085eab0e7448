import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SkeinEvent } from "../../src/core/events.ts";
import { PostgresBackend } from "../../src/store/postgres/store.ts";
import type { TestDatabase, TestServer } from "../support/postgres.ts";
import { migrator, postgresFor, roles } from "../support/postgres.ts";

let server: TestServer;
let database: TestDatabase;
const backends: PostgresBackend[] = [];

beforeEach(async (context) => {
  server = await postgresFor(context);
  database = await server.createDatabase();
});
afterEach(async () => {
  await Promise.all(backends.splice(0).map((backend) => backend.close()));
  await database.drop();
});

async function join() {
  const backend = await PostgresBackend.open({ url: database.url(migrator), maxConnections: 3 });
  backends.push(backend);
  const { events } = backend.shared;
  await events.join();
  const heard: string[] = [];
  events.subscribe(
    (event) => void heard.push(event.sessionId),
    () => void heard.push("loss"),
  );
  return { backend, events, heard };
}

const about = (sessionId: string): SkeinEvent => ({
  ...{ type: "session.updated", at: 1, userId: null, sessionKey: "agent:main:main" },
  sessionId,
});

describe("events between processes on PostgreSQL", () => {
  test("arrive in order at all others, without those from before they joined, and not at their own process", async () => {
    const [one, two] = [await join(), await join()];
    one.events.publish(about("a"));
    await one.events.flush();
    const late = await join();
    two.events.publish(about("b"));
    await two.events.flush();
    one.events.publish(about("c"));
    one.events.publish(about("d"));
    await one.events.flush();
    for (const each of [one, two, late]) await each.events.catchUp();
    expect(one.heard).toEqual(["b"]);
    expect(two.heard).toEqual(["a", "c", "d"]);
    expect(late.heard).toEqual(["b", "c", "d"]);
  });

  test("that depend on each other arrive in that order, whichever process sent them", async () => {
    const [one, two, three] = [await join(), await join(), await join()];
    for (const [at, each] of [one, two, one, two, one].entries()) {
      each.events.publish(about(String(at)));
      await each.events.flush();
    }
    await three.events.catchUp();
    expect(three.heard).toEqual(["0", "1", "2", "3", "4"]);
  });

  test("that are gone before they are read are reported as a loss, and later ones arrive", async () => {
    const [one, two] = [await join(), await join()];
    await server.administer(
      database.name,
      "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
      "CREATE TRIGGER skip BEFORE INSERT ON skein.feed FOR EACH ROW EXECUTE FUNCTION skip()",
    );
    one.events.publish(about("a"));
    await one.events.flush();
    await two.events.catchUp();
    expect(two.heard).toEqual(["loss"]);
    await server.administer(database.name, "DROP TRIGGER skip ON skein.feed");
    one.events.publish(about("b"));
    await one.events.flush();
    await two.events.catchUp();
    expect(two.heard).toEqual(["loss", "b"]);
  });

  test("of a process that stops without leaving are reported as a loss once, and of one that leaves they are not", async () => {
    const [one, two, three] = [await join(), await join(), await join()];
    await one.backend.close();
    const old = "UPDATE skein.feed_publishers SET beat_at = now() - interval '1 minute' WHERE left_at IS";
    await server.administer(database.name, `${old} NOT NULL`);
    await two.events.catchUp();
    expect(two.heard).toEqual([]);
    // Stands for a process that was killed.
    await three.backend.close();
    await server.administer(database.name, "UPDATE skein.feed_publishers SET left_at = NULL");
    await server.administer(database.name, `${old} NULL`);
    await two.events.catchUp();
    await two.events.catchUp();
    expect(two.heard.filter((each) => each === "loss").length).toBeGreaterThan(0);
    const losses = two.heard.length;
    await two.events.catchUp();
    expect(two.heard).toHaveLength(losses);
  });

  test("need a role that works for all users", async () => {
    const backend = await PostgresBackend.open({ url: database.url(roles.app) });
    backends.push(backend);
    await expect(backend.shared.events.join()).rejects.toMatchObject({ code: "database_unavailable" });
    await expect(backend.shared.events.join()).rejects.toThrow("postgres.workerUrl");
  });
});
