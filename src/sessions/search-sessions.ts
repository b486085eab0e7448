import { mapConcurrently } from "../core/concurrency.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import type { SearchPayload } from "../protocol/session-list.ts";
import type { Scope, SearchHit, SearchQuery, Store } from "../store/contract.ts";
import { userScope } from "../store/list-query.ts";
import { matchedRanges } from "../store/search/snippet.ts";
import { mergeByRank } from "../store/search/vectors.ts";
import type { App } from "./app.ts";

/** The position of the last hit that paging can reach. It is limited because each page ranks all earlier hits again. */
const maxOffset = 1000;
const readsAtATime = 8;

/**
 * Returns a page of `sessions.search`. The cursor contains the number of earlier hits and the time of the first page.
 * Entries newer than the first page are omitted so that they do not move other hits between pages.
 */
export async function searchSessions(
  app: Pick<App, "store" | "embeddings">,
  scope: Scope,
  { limit = 10, ...query }: Omit<SearchQuery, "offset">,
  { cursor, now }: { readonly cursor: string | undefined; readonly now: number },
): Promise<SearchPayload> {
  const [offset = 0, startedAt = now] = cursor?.split(".").map(Number) ?? [];
  const until = Math.min(query.until ?? startedAt, startedAt);
  const asked = cursor === undefined ? query : { ...query, until };
  // One extra hit is requested to determine whether there is another page.
  const { hits, behind } = await findHits(app, scope, { ...asked, offset, limit: limit + 1 });
  const next = offset + limit;
  const rows = await mapConcurrently(hits.slice(0, limit), readsAtATime, async (hit) => {
    const { key, sessionId, entryId, role, time, snippet } = hit;
    const ranges = matchedRanges(snippet, query.text);
    return {
      key,
      sessionId,
      entryId,
      role,
      time,
      snippet,
      ranges,
      active: await isActive(app.store, scope, hit),
    };
  });
  return present({
    count: rows.length,
    hits: rows,
    nextCursor: hits.length > limit && next < maxOffset ? `${next}.${until}` : null,
    indexing: behind === 0 ? null : { behind },
  });
}

/** Whether an entry is on the active branch. If it is not, reading the page before it fails with `not_found`. */
async function isActive(
  { sessions }: Store,
  scope: Scope,
  { sessionId, entryId }: SearchHit,
): Promise<boolean> {
  try {
    const range = { along: "branch", before: entryId, limit: 1 } as const;
    return (await sessions.page(userScope(scope), sessionId, range)) !== null;
  } catch (error) {
    if (error instanceof SkeinError && error.code === "not_found") return false;
    throw error;
  }
}

/** The most hits that a store returns at once. */
const pageSize = 100;

/** Searches by words and, if embeddings are configured, also by meaning. */
export async function findHits(
  { store, embeddings }: Pick<App, "store" | "embeddings">,
  scope: Scope,
  query: SearchQuery,
): ReturnType<Store["search"]["search"]> {
  const embedding = (await embeddings?.ofQuery(query.text)) ?? null;
  if (embedding === null || store.search.nearest === undefined) return store.search.search(scope, query);
  const { offset = 0, limit = 10 } = query;
  const near = await store.search.nearest(scope, { ...query, limit: pageSize }, embedding);
  const words: SearchHit[] = [];
  let behind = 0;
  for (let isMore = true; isMore && words.length < offset + limit; ) {
    const page = await store.search.search(scope, { ...query, offset: words.length, limit: pageSize });
    words.push(...page.hits);
    behind = page.behind;
    isMore = page.hits.length === pageSize;
  }
  const hits = mergeByRank(words, near);
  const first = new Map(hits.toReversed().map((hit) => [hit.sessionId, hit]));
  const shown = query.bySession === true ? hits.filter((hit) => first.get(hit.sessionId) === hit) : hits;
  return { hits: shown.slice(offset, offset + limit), behind };
}
