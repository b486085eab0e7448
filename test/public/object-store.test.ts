import { readdirSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pngOf } from "../support/images.ts";
import { Machines } from "../support/machines.ts";
import { serverFor } from "../support/postgres-server.ts";
import type { S3Server } from "../support/s3-server.ts";
import { startS3Server } from "../support/s3-server.ts";

let machines: Machines;
let s3: S3Server;

beforeEach(async (context) => {
  machines = await Machines.open(context);
  s3 = await startS3Server(machines.folder.path);
});

afterEach(async () => {
  await machines?.close();
  await s3?.stop();
});

/** Returns the environment of a gateway that keeps blobs in the object store. */
function withObjectStore(): NodeJS.ProcessEnv {
  const { endpoint, bucket, prefix = "", accessKeyId, secretAccessKey } = s3.options;
  return {
    SKEIN_BLOBS__S3__ENDPOINT: endpoint,
    SKEIN_BLOBS__S3__BUCKET: bucket,
    SKEIN_BLOBS__S3__PREFIX: prefix,
    SKEIN_BLOBS__S3__ACCESS_KEY_ID: accessKeyId,
    SKEIN_BLOBS__S3__SECRET_ACCESS_KEY: secretAccessKey,
  };
}

const storedFiles = () =>
  readdirSync(s3.folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith("_object"));

test("[MCH10] an image that one gateway receives is in the bucket, is read by another, and is purged", async (context) => {
  const env = withObjectStore();
  const [here, there] = await Promise.all([machines.start("a", { env }), machines.start("b", { env })]);
  const image = pngOf(4, 3, 100_000);
  const attachments = [{ mimeType: "image/png", data: image.toString("base64") }];
  const asked = { sessionKey: "main", message: "Look", idempotencyKey: "1", attachments, userId: "ann" };
  const { runId } = await here.call("chat.send", asked);
  await here.call("agent.wait", { runId, timeoutMs: 150_000, userId: "ann" });
  const { entries } = await there.call("sessions.entries", { key: "main", userId: "ann" });
  const sha256 = /"sha256":"([0-9a-f]{64})"/.exec(JSON.stringify(entries))?.[1] ?? "";
  const found = await there.call("blobs.get", { key: "main", sha256, userId: "ann" });
  expect(
    Buffer.from(found.data, "base64").equals(image.subarray(0, Buffer.from(found.data, "base64").length)),
  ).toBe(true);
  expect(storedFiles()).toHaveLength(1);
  const count = "SELECT count(*)::int AS count FROM skein.blobs";
  const [rows] = await (await serverFor(context)).administer(machines.database.name, count);
  expect(rows?.rows).toEqual([{ count: 0 }]);
  await there.call("users.remove", { userId: "ann" });
  expect(storedFiles()).toEqual([]);
});
