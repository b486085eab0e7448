import type { Entry } from "../core/entries.ts";
import { isRecord } from "../core/is-record.ts";
import { parseSession, parsingSession } from "../core/parse-session.ts";
import { present } from "../core/present.ts";
import type { Steps } from "../core/slices.ts";
import type { TreeOptions } from "../core/tree.ts";
import { SessionTree } from "../core/tree.ts";
import type { SessionRecord, Store } from "./contract.ts";
import { noSuchSession, scopeOfSession } from "./rules.ts";

const pageLimit = 1000;

/** Reads all of a session's entries through the store contract, page by page. */
export async function readTree(
  { sessions }: Pick<Store, "sessions">,
  session: SessionRecord,
  signal?: AbortSignal,
): Promise<SessionTree> {
  const { sessionId, cwd, createdAt } = session;
  const scope = scopeOfSession(session);
  const pages: (readonly Entry[])[] = [];
  for (let before: string | null | undefined; before !== null; ) {
    signal?.throwIfAborted();
    const range = { along: "all" as const, limit: pageLimit, ...present({ before }) };
    const page = (await sessions.page(scope, sessionId, range)) ?? noSuchSession(sessionId);
    pages.push(page.entries);
    before = page.hasEarlier ? (page.entries[0]?.id ?? null) : null;
  }
  const timestamp = new Date(createdAt).toISOString();
  const header = JSON.stringify({ type: "session", version: 3, id: sessionId, timestamp, cwd });
  const tree = SessionTree.from(parseSession(Buffer.from(`${header}\n`)));
  tree.takeIn(pages.toReversed().flat());
  return tree;
}

/** Loads the blobs that a session refers to. */
export async function loadBlobs(
  { blobs }: Pick<Store, "blobs">,
  session: SessionRecord,
  tree: SessionTree,
): Promise<(sha256: string) => Uint8Array | null> {
  const scope = scopeOfSession(session);
  const loaded = new Map<string, Uint8Array | null>();
  for (const sha256 of [...tree.entries()].flatMap(blobsOf))
    if (!loaded.has(sha256)) loaded.set(sha256, await blobs.get(scope, sha256));
  return (sha256) => loaded.get(sha256) ?? null;
}

/** Copies a tree to another session ID. Store-specific header fields are dropped. */
export function* copyTree(
  tree: SessionTree,
  init: { readonly id: string; readonly cwd: string },
  options: TreeOptions,
): Steps<SessionTree> {
  const { skein: _skein, ...header } = tree.header;
  const lines: Buffer[] = [];
  for (const line of tree.encodeLines()) {
    const isFirst = lines.length === 0;
    lines.push(Buffer.from(isFirst ? `${JSON.stringify({ ...header, ...init })}\n` : line));
    yield line.length;
  }
  return yield* SessionTree.growing(yield* parsingSession(Buffer.concat(lines)), options);
}

/** Returns the blobs that an entry refers to. */
export function blobsOf(entry: Entry): string[] {
  const content =
    entry.type === "message" && "content" in entry.message
      ? entry.message.content
      : entry.type === "custom_message"
        ? entry.content
        : null;
  if (!Array.isArray(content)) return [];
  return content.flatMap((block: unknown) => {
    const blob = isRecord(block) && isRecord(block.skein) ? block.skein.blob : null;
    return isRecord(blob) && typeof blob.sha256 === "string" ? [blob.sha256] : [];
  });
}

/** Returns the blobs that lines refer to, without parsing them. */
export function hashesIn(text: string): string[] {
  return [...text.matchAll(/"sha256":"([0-9a-f]{64})"/g)].map((match) => match[1] as string);
}
