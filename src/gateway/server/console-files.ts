import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { BoundedMap } from "../../core/bounded-map.ts";
import { RequestRefusedError } from "../methods/dispatch.ts";
import type { FixedHeaders, HttpExchange } from "./exchange.ts";
import { assetHeaders, pageHeaders } from "./exchange.ts";
import { noSuch } from "./refusals.ts";

/**
 * The built console. It consists of `index.html` and the files in `assets`, whose names contain a content hash. Files
 * are kept in memory because otherwise clients without a token could hold one file descriptor or one copy per
 * connection.
 */
export class ConsoleFiles {
  readonly #folder: string;
  readonly #assets = new BoundedMap<StaticFile>(maxAssets);
  #page: { readonly version: string; readonly file: StaticFile } | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the current `index.html`, or `null` if there is none. */
  async readPage(): Promise<StaticFile | null> {
    const path = join(this.#folder, "index.html");
    const found = await ifPresent(stat(path));
    if (found === null) return null;
    const version = `${found.mtimeMs} ${found.size} ${found.ino}`;
    if (this.#page?.version === version) return this.#page.file;
    const bytes = await ifPresent(readFile(path));
    if (bytes === null) return null;
    const file = describeFile(bytes, { "content-type": "text/html; charset=utf-8" });
    this.#page = { version, file };
    return file;
  }

  /** Returns the smallest encoding of an asset that the client accepts, or `null` if there is no such asset. */
  async readAsset(name: string, acceptEncoding: string): Promise<StaticFile | null> {
    const contentType = contentTypes[extname(name)];
    if (contentType === undefined || !assetName.test(name)) return null;
    for (const [encoding, extension] of compressions) {
      if (!accepts(acceptEncoding, encoding)) continue;
      const headers = { "content-type": contentType, vary: "accept-encoding", "content-encoding": encoding };
      const file = await this.#read(`${name}${extension}`, headers);
      if (file !== null) return file;
    }
    return this.#read(name, { "content-type": contentType, vary: "accept-encoding" });
  }

  async #read(name: string, headers: FixedHeaders): Promise<StaticFile | null> {
    const known = this.#assets.get(name);
    if (known !== undefined) return known;
    const bytes = await ifPresent(readFile(join(this.#folder, "assets", name)));
    if (bytes === null) return null;
    const file = describeFile(bytes, headers);
    this.#assets.set(name, file);
    return file;
  }
}

export interface StaticFile {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly headers: FixedHeaders;
}

const maxAssets = 1000;
/** A single path segment without a leading dot so that no name can lead outside the folder. */
const assetName = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;
const contentTypes: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webp": "image/webp",
};
/** Encodings of the compressed files next to the original, smallest first. */
const compressions = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

function describeFile(bytes: Buffer, headers: FixedHeaders): StaticFile {
  const hash = createHash("sha256").update(bytes).digest("base64url").slice(0, 22);
  return { bytes, etag: `"${hash}"`, headers };
}

/** Whether `Accept-Encoding` includes an encoding with a weight other than 0. */
function accepts(header: string, encoding: string): boolean {
  return header.split(",").some((each) => {
    const [name = "", ...parameters] = each.split(";").map((part) => part.trim().toLowerCase());
    return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}

async function ifPresent<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading;
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EISDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
}

/** `GET /`: serves the console, or `fallback` if there is none. */
export function servePage(
  files: ConsoleFiles | null,
  fallback: string,
): (exchange: HttpExchange) => Promise<void> {
  return async (exchange) => {
    const page = (await files?.readPage()) ?? null;
    if (page !== null) return sendFile(exchange, page, pageHeaders);
    exchange.send({ headers: pageHeaders, contentType: "text/plain; charset=utf-8", text: fallback });
  };
}

/** `GET /assets/<name>`: serves a console asset. */
export function serveAsset(files: ConsoleFiles | null): (exchange: HttpExchange) => Promise<void> {
  return async (exchange) => {
    const accepted = exchange.request.headers["accept-encoding"]?.toString() ?? "";
    const asset = (await files?.readAsset(exchange.name, accepted)) ?? null;
    if (asset === null) throw new RequestRefusedError(noSuch("such console file"));
    sendFile(exchange, asset, assetHeaders);
  };
}

function sendFile(
  exchange: HttpExchange,
  { bytes, etag, headers: own }: StaticFile,
  fixed: FixedHeaders,
): void {
  const { "content-type": contentType, ...others } = own;
  const headers = { ...fixed, ...others, etag };
  const known = exchange.request.headers["if-none-match"]?.toString() ?? "";
  // A proxy that compresses a page makes its ETag weak.
  const isUnchanged = known.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
  if (isUnchanged) exchange.response.writeHead(304, headers).end();
  else exchange.send({ headers, ...(contentType === undefined ? {} : { contentType }), body: bytes });
}
