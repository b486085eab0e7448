import { afterAll, beforeEach, describe, expect, test } from "vitest";
import type { Store, StoreChange } from "../../src/entry-store.ts";
import type { Entry } from "../../src/index.ts";
import { SkeinError } from "../../src/index.ts";
import { databaseError } from "../../src/store/postgres/database-errors.ts";
import { openPostgresStore, postgresFor, TestServer } from "../support/postgres.ts";
import { ServerKeeper } from "../support/postgres-broker.ts";
import type { PostgresProxy } from "../support/postgres-proxy.ts";
import { startPostgresProxy } from "../support/postgres-proxy.ts";
import { append, create, ids, said } from "../support/store-calls.ts";

const scope = { userId: "ann", agentId: "main" };
/** A restart can take long on a busy machine. */
const patient = Array.from({ length: 3000 }, () => 50);

describe("a PostgreSQL server that crashes", () => {
  let keeper: ServerKeeper | null = null;
  let server: TestServer;

  beforeEach(async (context) => {
    await postgresFor(context);
    if (keeper !== null) return;
    keeper = new ServerKeeper();
    const kept = await keeper.server;
    if ("missing" in kept) throw new Error(kept.missing);
    server = new TestServer(kept.port);
  });
  afterAll(async () => {
    await keeper?.stop();
  });

  async function restart(): Promise<void> {
    await keeper?.crash();
    await keeper?.start();
  }

  test("loses no acknowledged entry, stores none twice, and is used again after the restart", async () => {
    const database = await server.createDatabase();
    const store = await openPostgresStore({ url: database.url(), retryDelaysMs: patient });
    const names = ["a", "b", "c", "d"];
    for (const name of names) await create(store, scope, name);
    const published: string[] = [];
    store.watch.subscribe(scope, (change) => {
      if (change.type === "appended") published.push(...change.entries.map(textOf));
    });
    let stored = 0;
    const halves = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const talk = async (name: string) => {
      for (let index = 0; index < 60; index++) {
        await store.sessions.append(scope, name, [{ draft: said(`${name}${index}`) }]);
        stored += 1;
        if (stored === 60) halves[0]?.resolve();
        if (stored === 150) halves[1]?.resolve();
      }
    };
    const talking = Promise.all(names.map(talk));
    for (const half of halves) {
      await half.promise;
      await restart();
    }
    await talking;
    const expected = names.flatMap((name) => Array.from({ length: 60 }, (_, index) => `${name}${index}`));
    const found: string[] = [];
    for (const name of names) {
      const page = await store.sessions.page(scope, name, { along: "branch", limit: 1000 });
      found.push(...(page?.entries ?? []).map(textOf));
    }
    expect(found).toEqual(expected);
    expect(published.toSorted()).toEqual(expected.toSorted());
    await store.close();
    await database.drop();
  });

  test("is unavailable until it is started again, and rejected changes are not stored", async () => {
    const database = await server.createDatabase();
    const store = await openPostgresStore({ url: database.url(), retryDelaysMs: [] });
    await create(store, scope, "s");
    await append(store, scope, "s", "a");
    await keeper?.crash();
    const refused = { code: "database_unavailable" };
    await expect(append(store, scope, "s", "b")).rejects.toMatchObject(refused);
    await expect(append(store, scope, "s", "b")).rejects.toThrow("Nothing was stored");
    await expect(create(store, scope, "t")).rejects.toMatchObject(refused);
    await expect(store.sessions.get(scope, "s")).rejects.toMatchObject(refused);
    await expect(openPostgresStore({ url: database.url(), retryDelaysMs: [] })).rejects.toMatchObject(
      refused,
    );
    await keeper?.start();
    await append(store, scope, "s", "c");
    expect(await ids(store, scope, "s")).toEqual(["a", "c"]);
    expect(await store.sessions.get(scope, "t")).toBeNull();
    await store.close();
    await database.drop();
  });
});

function textOf(entry: Entry): string {
  return entry.type === "message" ? String(Reflect.get(entry.message, "content")) : entry.type;
}

/** A fence that only the first attempt passes. */
function openOnce(): () => boolean {
  let isOpen = true;
  return () => {
    const wasOpen = isOpen;
    isOpen = false;
    return wasOpen;
  };
}

describe("a connection that is lost after the server has stored a change", () => {
  const changes: StoreChange["type"][] = [];
  let server: TestServer;

  beforeEach(async (context) => {
    server = await postgresFor(context);
  });

  async function withProxy(
    url: string,
    act: (store: Store, proxy: PostgresProxy) => Promise<void>,
  ): Promise<void> {
    const proxy = await startPostgresProxy(url);
    const store = await openPostgresStore({ url: proxy.url, retryDelaysMs: [1, 1, 1] });
    changes.length = 0;
    store.watch.subscribe(scope, ({ type }) => changes.push(type));
    await act(store, proxy);
    expect(proxy.dropped()).toBe(1);
    await store.close();
    await proxy.close();
  }

  test.each([
    ["one call", () => ({})],
    ["a transaction with a fence", () => ({ fence: () => true })],
    [
      "a transaction whose fence closes after the commit",
      () => ({ fence: openOnce(), expectedLeafId: null }),
    ],
  ])("an append by %s is stored and published once, and acknowledged", async (_, optionsOf) => {
    const options = optionsOf();
    const database = await server.createDatabase();
    await withProxy(database.url(), async (store, proxy) => {
      await create(store, scope, "s");
      if ("fence" in options) proxy.dropReplyToCommitOf("skein.append");
      else proxy.dropReplyTo("skein.append");
      const { entries } = await store.sessions.append(scope, "s", [{ draft: said("once") }], options);
      expect(await ids(store, scope, "s")).toEqual(entries.map(({ id }) => id));
      expect(changes).toEqual(["created", "appended"]);
    });
    await database.drop();
  });

  test("a session is created once", async () => {
    const database = await server.createDatabase();
    await withProxy(database.url(), async (store, proxy) => {
      proxy.dropReplyToCommitOf("skein.create_session");
      const { uid } = await create(store, scope, "s");
      expect((await store.sessions.get(scope, "s"))?.uid).toBe(uid);
      expect(changes).toEqual(["created"]);
    });
    await database.drop();
  });

  test("a change that cannot be repeated is rejected, and the error says that its outcome is unknown", async () => {
    const database = await server.createDatabase();
    await withProxy(database.url(), async (store, proxy) => {
      await create(store, scope, "s");
      proxy.dropReplyToCommitOf("x/y");
      const patching = store.sessions.patch(scope, "s", { model: "x/y" });
      await expect(patching).rejects.toMatchObject({ code: "database_unavailable" });
      await expect(patching).rejects.toThrow("not known whether the last change was stored");
    });
    await database.drop();
  });

  test("a read is repeated", async () => {
    const database = await server.createDatabase();
    await withProxy(database.url(), async (store, proxy) => {
      await create(store, scope, "s");
      proxy.dropReplyTo("skein.sessions");
      expect(await store.sessions.count(scope, {})).toBe(1);
    });
    await database.drop();
  });
});

describe("a database that cannot be used", () => {
  test("an unknown name, role or port is reported with the server's reason", async (context) => {
    const server = await postgresFor(context);
    const open = (url: string) => openPostgresStore({ url, retryDelaysMs: [] });
    const refused = { code: "database_unavailable" };
    await expect(open(server.urlOf("no_such_database", "postgres"))).rejects.toMatchObject(refused);
    await expect(open(server.urlOf("no_such_database", "postgres"))).rejects.toThrow("no_such_database");
    await expect(open(server.urlOf("postgres", "no_such_role"))).rejects.toThrow("no_such_role");
    await expect(open("postgres://ann:secret@127.0.0.1:1/skein")).rejects.toMatchObject(refused);
    await expect(open("postgres://ann:secret@127.0.0.1:1/skein")).rejects.not.toThrow("secret");
  });

  test("a read-only database is read, and does not acknowledge a change", async (context) => {
    const server = await postgresFor(context);
    const database = await server.createDatabase();
    const store = await openPostgresStore({ url: database.url() });
    await create(store, scope, "s");
    await store.close();
    const setting = `ALTER DATABASE ${database.name} SET default_transaction_read_only`;
    await server.administer("postgres", `${setting} = on`);
    const reading = await openPostgresStore({ url: database.url() });
    expect((await reading.sessions.get(scope, "s"))?.sessionId).toBe("s");
    await expect(append(reading, scope, "s", "a")).rejects.toMatchObject({ code: "database_read_only" });
    await expect(create(reading, scope, "t")).rejects.toMatchObject({ code: "database_read_only" });
    await reading.close();
    await server.administer("postgres", `${setting} = off`);
    const writing = await openPostgresStore({ url: database.url() });
    await append(writing, scope, "s", "b");
    expect(await ids(writing, scope, "s")).toEqual(["b"]);
    await writing.close();
    await database.drop();
  });

  test("a role without rights is reported", async (context) => {
    const server = await postgresFor(context);
    const database = await server.createDatabase();
    await server.administer(database.name, `REVOKE INSERT ON skein.sessions FROM PUBLIC, skein_app`);
    const store = await openPostgresStore({ url: database.url() });
    await expect(create(store, scope, "s")).rejects.toMatchObject({ code: "database_unavailable" });
    await store.close();
    await database.drop();
  });

  test.each([
    ["53100", "database_full"],
    ["25006", "database_read_only"],
    ["57P01", "database_unavailable"],
    ["53300", "database_unavailable"],
    ["28P01", "database_unavailable"],
    ["22P02", "internal"],
  ])("the server's error %s is %s", (code, expected) => {
    const error = Object.assign(new Error("as the server says"), { code });
    const found = databaseError(error, "db/skein", "not stored");
    expect(found).toBeInstanceOf(SkeinError);
    expect(found).toMatchObject({ code: expected, cause: error });
    expect(String(found)).toContain("as the server says");
  });
});
