import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { storeConformance } from "../../src/entry-conformance.ts";
import type { S3Options } from "../../src/entry-postgres.ts";
import { openPostgres } from "../../src/entry-postgres.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { TestDatabase, TestServer } from "../support/postgres.ts";
import { migrator, openPostgresStore, postgresFor } from "../support/postgres.ts";
import type { S3Server } from "../support/s3-server.ts";
import { startS3Server } from "../support/s3-server.ts";

let folder: ReturnType<typeof temporaryFolder>;
let server: TestServer;
let s3: S3Server;

beforeEach(async (context) => {
  server = await postgresFor(context);
  folder = temporaryFolder();
  s3 = await startS3Server(folder.path);
});

afterEach(async () => {
  await s3?.stop();
  folder?.remove();
});

const create = async () => {
  const database = await server.createDatabase();
  const store = await openPostgresStore({ url: database.url(), s3: s3.options });
  const dispose = async () => {
    await store.close();
    await database.drop();
  };
  return { store, dispose };
};

const withBlobs = /blob|purge|redact/i;

describe("the PostgreSQL store with blobs in an S3-compatible object store", () => {
  const harness = { create, capabilities: { reopen: false, powerCut: false } };
  for (const { id, title, run } of storeConformance(harness).filter((each) => withBlobs.test(each.title)))
    test(`[${id}] ${title}`, run);
});

/** Opens a database with an object store and stores a blob of ann's. */
async function putBlob(database: TestDatabase, options: S3Options): Promise<string> {
  const backend = await openPostgres({ url: database.url(migrator), s3: options });
  try {
    return await backend.openStore().blobs.put({ userId: "ann", agentId: "main" }, new Uint8Array([1, 2, 3]));
  } finally {
    await backend.close();
  }
}

/** Answers requests itself, or passes them on to the object store if `answer` returns `false`. */
async function startFaulty(answer: (request: IncomingMessage, response: ServerResponse) => boolean) {
  let count = 0;
  const http = createServer((request, response) => {
    count += 1;
    if (!answer(request, response)) response.writeHead(200).end("<ListBucketResult></ListBucketResult>");
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo;
  return {
    options: { ...s3.options, endpoint: `http://127.0.0.1:${port}` },
    count: () => count,
    close: async () => {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}

describe("an object store that does not work", () => {
  test.each([
    [{ bucket: "absent" }, "NoSuchBucket"],
    [{ accessKeyId: "wrong" }, "InvalidAccessKeyId"],
    [{ endpoint: "http://absent.invalid" }, "absent.invalid"],
  ])("%o is an error when the database is opened", async (change, problem) => {
    const database = await server.createDatabase();
    const opened = putBlob(database, { ...s3.options, ...change });
    await expect(opened).rejects.toMatchObject({ code: "blobs_unavailable" });
    await expect(opened).rejects.toThrow(problem);
    await database.drop();
  });

  test("a wrong secret is an error with the setting to check, and is not tried again", async () => {
    const database = await server.createDatabase();
    const refusing = await startFaulty((_, response) => {
      response.writeHead(403).end("<Error><Code>SignatureDoesNotMatch</Code></Error>");
      return true;
    });
    await expect(putBlob(database, refusing.options)).rejects.toThrow("Check secretAccessKey and the region");
    expect(refusing.count()).toBe(1);
    await refusing.close();
    await database.drop();
  });

  test("requests that fail for a moment are repeated, and one that never succeeds is an error", async () => {
    const database = await server.createDatabase();
    let failures = 2;
    const fail = (_: IncomingMessage, response: ServerResponse) => {
      if (failures-- <= 0) return false;
      response.writeHead(503).end("<Error><Code>SlowDown</Code></Error>");
      return true;
    };
    const faulty = await startFaulty(fail);
    await putBlob(database, faulty.options);
    expect(faulty.count()).toBe(4);
    failures = Number.POSITIVE_INFINITY;
    await expect(putBlob(database, faulty.options)).rejects.toThrow("it answered 503 (SlowDown)");
    expect(faulty.count()).toBe(8);
    await faulty.close();
    await database.drop();
  });

  test("an object store that does not answer is an error", async () => {
    const database = await server.createDatabase();
    const silent = await startFaulty(() => true);
    const opened = putBlob(database, { ...silent.options, timeoutMs: 50 });
    await expect(opened).rejects.toMatchObject({ code: "blobs_unavailable" });
    await silent.close();
    await database.drop();
  });

  test("a database whose blobs are in an object store is refused without it", async () => {
    const database = await server.createDatabase();
    await putBlob(database, s3.options);
    await expect(openPostgres({ url: database.url(migrator) })).rejects.toThrow("s3://skein-test/skein/");
    await database.drop();
  });

  test("blobs from before the object store remain readable, and are purged with it", async () => {
    const database = await server.createDatabase();
    const ann = { userId: "ann", agentId: "main" };
    const before = await openPostgres({ url: database.url(migrator) });
    const sha256 = await before.openStore().blobs.put(ann, new Uint8Array([9]));
    await before.close();
    const backend = await openPostgres({ url: database.url(migrator), s3: s3.options });
    const { blobs, purgeUser } = backend.openStore();
    const stored = await blobs.put(ann, new Uint8Array([8]));
    expect(await blobs.get(ann, sha256)).toEqual(new Uint8Array([9]));
    await purgeUser("ann");
    for (const each of [sha256, stored]) expect(await blobs.get(ann, each)).toBeNull();
    await backend.close();
    await database.drop();
  });
});
