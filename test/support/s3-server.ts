import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { S3Options } from "../../src/entry-postgres.ts";

/** The part of the package `s3rver` that is used here. It has no types. */
interface PackageServer {
  run(): Promise<AddressInfo>;
  close(): Promise<void>;
}

type PackageClass = new (options: object) => PackageServer;

/** An S3-compatible object store with one bucket in a folder. It checks the ID of the key, not signatures. */
export interface S3Server {
  readonly options: S3Options;
  readonly folder: string;
  stop(): Promise<void>;
}

export async function startS3Server(folder: string): Promise<S3Server> {
  const Server = createRequire(import.meta.url)("s3rver") as PackageClass;
  const directory = join(folder, "s3");
  mkdirSync(directory);
  const bucket = "skein-test";
  const settings = { address: "127.0.0.1", port: 0, silent: true, directory };
  const server = new Server({ ...settings, configureBuckets: [{ name: bucket }] });
  const { port } = await server.run();
  // The package accepts only this key.
  const key = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };
  return {
    options: { endpoint: `http://127.0.0.1:${port}`, bucket, prefix: "skein/", ...key },
    folder: join(directory, bucket),
    stop: () => server.close(),
  };
}
