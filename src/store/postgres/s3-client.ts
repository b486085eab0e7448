import { setTimeout as pause } from "node:timers/promises";
import type { AwsClient } from "aws4fetch";
import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";

/** A bucket of an S3-compatible object store. */
export interface S3Options {
  /** For example `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string;
  readonly bucket: string;
  /** Defaults to `us-east-1`. */
  readonly region?: string;
  /** Precedes the names of all objects, for example `skein/`. Letters, digits and `._/-`. */
  readonly prefix?: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** `false` puts the bucket in the host name instead of the path. Defaults to `true`. */
  readonly forcePathStyle?: boolean;
  /** How long an attempt can take. Defaults to 30,000 milliseconds. */
  readonly timeoutMs?: number;
}

interface S3Request {
  readonly method: "GET" | "PUT" | "DELETE";
  /** The name of an object. Absent for the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

interface S3Answer {
  readonly status: number;
  readonly bytes: Uint8Array;
}

const retryDelaysMs = [100, 400, 1600];
const defaultTimeoutMs = 30_000;

/** The error codes of S3 that an operator can act on. */
const adviceFor: Readonly<Record<string, string>> = {
  NoSuchBucket: "Create the bucket, or correct its name",
  InvalidAccessKeyId: "Check accessKeyId",
  SignatureDoesNotMatch: "Check secretAccessKey and the region",
  AccessDenied: "Allow the key to list the bucket, and to read, write and delete its objects",
};

/** Sends signed requests to a bucket. Every request is idempotent. */
export class S3Client {
  /** For example `s3://bucket/prefix`. Contains no key. */
  readonly name: string;
  readonly #options: S3Options;
  #signer: Promise<AwsClient> | null = null;
  readonly #base: string;
  readonly #timeoutMs: number;

  constructor(options: S3Options) {
    const { endpoint, bucket, prefix = "", forcePathStyle = true, timeoutMs = defaultTimeoutMs } = options;
    const base = new URL(endpoint);
    if (forcePathStyle) base.pathname = `${base.pathname.replace(/\/$/, "")}/${bucket}`;
    else base.host = `${bucket}.${base.host}`;
    this.name = `s3://${bucket}/${prefix}`;
    this.#options = options;
    this.#base = base.href.replace(/\/$/, "");
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Retries a request that got no response or a possibly temporary error. Returns only 2xx and 404 responses.
   */
  async send(request: S3Request): Promise<S3Answer> {
    for (let attempt = 0; ; attempt += 1) {
      const delay = retryDelaysMs[attempt];
      let problem: string;
      try {
        const answer = await this.#sendOnce(request);
        if (answer.status < 300) return answer;
        const code = errorCodeIn(answer);
        if (answer.status === 404 && code !== "NoSuchBucket") return answer;
        problem = `it answered ${answer.status}${code === "" ? "" : ` (${code})`}`;
        if (answer.status < 500 && answer.status !== 429) throw this.#error(problem, adviceFor[code]);
      } catch (error) {
        if (error instanceof SkeinError) throw error;
        problem = describeFailure(error);
      }
      if (delay === undefined) throw this.#error(problem);
      await pause(delay);
    }
  }

  /** Processes without an object store do not load the package. */
  #loadSigner(): Promise<AwsClient> {
    const { accessKeyId, secretAccessKey, region = "us-east-1" } = this.#options;
    this.#signer ??= import("aws4fetch").then(
      ({ AwsClient }) => new AwsClient({ accessKeyId, secretAccessKey, region, service: "s3" }),
    );
    return this.#signer;
  }

  async #sendOnce({ method, key, query = {}, body }: S3Request): Promise<S3Answer> {
    const path = key === undefined ? "" : `/${key}`;
    const search = new URLSearchParams(query).toString();
    const url = `${this.#base}${path}${search === "" ? "" : `?${search}`}`;
    const signed = await (await this.#loadSigner()).sign(url, {
      method,
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    });
    const answer = await fetch(signed, { signal: AbortSignal.timeout(this.#timeoutMs) });
    return { status: answer.status, bytes: new Uint8Array(await answer.arrayBuffer()) };
  }

  #error(
    problem: string,
    advice = "Check that the object store is running and reachable, then try again",
  ): SkeinError {
    return new SkeinError("blobs_unavailable", { store: this.name, problem, advice });
  }
}

function errorCodeIn({ bytes }: S3Answer): string {
  return /<Code>(\w+)<\/Code>/.exec(Buffer.from(bytes).toString("utf8"))?.[1] ?? "";
}

/** `fetch` reports the reason in the error's `cause`. */
function describeFailure(error: unknown): string {
  const { cause } = error as { readonly cause?: unknown };
  return thrownText(cause ?? error).replace(/\.$/, "");
}
