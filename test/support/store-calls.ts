import assert from "node:assert/strict";
import type { AppendItem, Scope, SessionRecord, Store } from "../../src/entry-store.ts";
import type { Entry, EntryDraft, ErrorCode } from "../../src/index.ts";
import { SkeinError } from "../../src/index.ts";

/** Store calls for tests that use `skein/store`. */

/** `names` lists what the message must mention. */
export async function refused(code: ErrorCode, act: () => Promise<unknown>, names = ""): Promise<void> {
  await assert.rejects(act, (error) => {
    assert.ok(error instanceof SkeinError, `expected a SkeinError ${code}, got ${String(error)}`);
    assert.equal(error.code, code);
    assert.ok(error.message.includes(names), `"${error.message}" does not name ${names}`);
    return true;
  });
}

export function said(text: string): EntryDraft {
  return { type: "message", message: { role: "user", content: text, timestamp: 1 } };
}

export function answered(text: string): EntryDraft {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost };
  const content = [{ type: "text" as const, text }];
  const made = { api: "a", provider: "p", model: "m", usage, stopReason: "stop" as const, timestamp: 2 };
  return { type: "message", message: { role: "assistant", content, ...made } };
}

export function create(store: Store, scope: Scope, sessionId: string, meta = {}): Promise<SessionRecord> {
  return store.sessions.create(scope, { key: `agent:main:session:${sessionId}`, sessionId, cwd: "/w", meta });
}

/** Appends texts under IDs that are the same as the texts. */
export async function append(
  store: Store,
  scope: Scope,
  sessionId: string,
  ...texts: string[]
): Promise<void> {
  const items: AppendItem[] = texts.map((text) => ({ draft: said(text), id: text }));
  await store.sessions.append(scope, sessionId, items);
}

/** Returns all entries, oldest first, read by paging backward. */
export async function allEntries(store: Store, scope: Scope, sessionId: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let before: string | undefined; ; before = entries[0]?.id) {
    const to = before === undefined ? {} : { before };
    const page = await store.sessions.page(scope, sessionId, { along: "all", limit: 1000, ...to });
    entries.unshift(...(page?.entries ?? []));
    if (page === null || !page.hasEarlier) return entries;
  }
}

export async function ids(store: Store, scope: Scope, sessionId: string): Promise<string[]> {
  return (await allEntries(store, scope, sessionId)).map((entry) => entry.id);
}

export async function listed(store: Store, scope: Scope, query = {}): Promise<string[]> {
  return (await store.sessions.list(scope, query)).sessions.map((session) => session.sessionId);
}
