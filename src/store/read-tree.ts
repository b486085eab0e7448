import type { Entry } from "../core/entries.ts";
import { parseSession } from "../core/parse-session.ts";
import { present } from "../core/present.ts";
import { SessionTree } from "../core/tree.ts";
import { blobsOf } from "./blob-refs.ts";
import type { SessionRecord, Store } from "./contract.ts";
import { noSuchSession } from "./refusals.ts";
import { scopeOfSession } from "./scoped.ts";

/** Sessions read through the contract alone, for stores without files. */

const pageLimit = 1000;

/** Reads every entry of a session, on all branches, page by page. */
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

/** Loads the blobs that a session's entries name. */
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
