import type {
  EntryPage,
  EntryRange,
  Json,
  ListedSession,
  MetaPatch,
  Scope,
  SessionDigest,
  SessionInit,
  SessionMeta,
  SessionQuery,
  SessionRecord,
  SessionSort,
  TrashedSession,
} from "../../src/entry-store.ts";
import { channelOf } from "../../src/entry-store.ts";
import type { Entry, Lookup } from "../../src/index.ts";
import { parseKey, parseSession, SessionTree, SkeinError } from "../../src/index.ts";

/** The parts of the store in `sqlite-store.ts` that do not need a database. */

export interface Row {
  uid: string;
  userId: string | null;
  agentId: string;
  key: string;
  meta: SessionMeta;
  version: number;
  createdAt: number;
  updatedAt: number;
  removedAt: number | null;
  tree: SessionTree;
}

const writtenOnce = ["spawnedBy", "forkedFrom", "spawnDepth", "spawnMode", "role", "rootId", "toolLayers"];

export function jsonText(value: Json): string {
  try {
    const text = JSON.stringify(value, (_, each: unknown) =>
      typeof each === "number" && !Number.isFinite(each) ? invalid("A number is not finite") : each,
    );
    return text ?? invalid("The value is not JSON");
  } catch (error) {
    throw error instanceof SkeinError ? error : invalid("The value is not JSON");
  }
}

export function recordOf({ tree, removedAt: _removed, ...row }: Row): SessionRecord {
  const { id: sessionId, cwd = "" } = tree.header;
  return { ...row, kind: kindOf(row.key), sessionId, cwd, name: tree.name, leafId: tree.leafId };
}

export function kindOf(key: string): SessionRecord["kind"] {
  const { form, ...parsed } = parseKey(key);
  const base = "base" in parsed ? (parsed.base as { form: string }).form : form;
  return (["main", "group", "cron", "hook", "node"].find((kind) => kind === base) ??
    "other") as SessionRecord["kind"];
}

export function trashedOf(row: Row): TrashedSession {
  const { uid, userId, agentId, key, kind, sessionId, meta } = recordOf(row);
  const about = { uid, userId, agentId, key, kind, sessionId, label: meta.label ?? null };
  return { ...about, removedAt: row.removedAt ?? 0, bytes: row.tree.encode().length };
}

export function digestOf({ tree }: Row): SessionDigest {
  let digest: SessionDigest = {
    entries: tree.size,
    bytes: Buffer.byteLength(tree.encode()),
    model: null,
    thinkingLevel: null,
    totalTokens: 0,
    costUsd: 0,
    contextTokens: null,
    compactions: 0,
    summary: null,
    lastInputAt: null,
  };
  for (const entry of tree.entries()) digest = { ...digest, ...digestChange(digest, entry) };
  return digest;
}

export function digestChange(digest: SessionDigest, entry: Entry): Partial<SessionDigest> {
  if (entry.type === "thinking_level_change") return { thinkingLevel: entry.thinkingLevel };
  if (entry.type === "model_change") return { model: { provider: entry.provider, modelId: entry.modelId } };
  if (entry.type === "compaction") {
    const summary = /Goal\n+([^\n]+)/.exec(entry.summary)?.[1] ?? digest.summary;
    return { summary, compactions: digest.compactions + 1, contextTokens: null };
  }
  if (entry.type !== "message") return {};
  const { message } = entry;
  if (message.role === "user") {
    const isPerson = (message.provenance?.kind ?? "external_user") === "external_user";
    const summary = digest.summary ?? saidIn(entry)?.text.slice(0, 200) ?? null;
    return { summary, ...(isPerson ? { lastInputAt: Date.parse(entry.timestamp) } : {}) };
  }
  if (message.role !== "assistant") return {};
  const { provider = "", model = "", usage } = message;
  const tokens = usage?.totalTokens ?? 0;
  return {
    model: { provider, modelId: model },
    totalTokens: digest.totalTokens + tokens,
    costUsd: (digest.costUsd ?? 0) + (usage?.cost?.total ?? 0),
    contextTokens: tokens > 0 ? tokens : digest.contextTokens,
  };
}

export function saidIn(entry: Entry): { role: string; text: string } | null {
  if (entry.type === "custom_message") return { role: "custom", text: textIn(entry.content) };
  if (entry.type !== "message") return null;
  const { message } = entry;
  return { role: message.role, text: "content" in message ? textIn(message.content) : "" };
}

export function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const texts = content.map((block: { text?: string; arguments?: unknown }) =>
    block.arguments === undefined ? (block.text ?? "") : JSON.stringify(block.arguments),
  );
  return texts.join("\n");
}

/**
 * Lowercase words, the parts of identifiers, and pairs of Chinese characters. For stored text, single characters as
 * well.
 */
export function wordsIn(text: string, isQuery: boolean): string[] {
  const words: string[] = [];
  for (const [run] of text.matchAll(/\p{Script=Han}+|[\p{L}\p{N}_]+/gu)) {
    if (/^\p{Script=Han}/u.test(run)) {
      const characters = Array.from(run);
      const pairs = characters.slice(1).map((character, index) => characters[index] + character);
      words.push(...pairs, ...(isQuery && characters.length > 1 ? [] : characters));
    } else {
      const parts = run.match(/\p{Lu}?\p{Ll}+|\p{Lu}+|\p{N}+/gu) ?? [];
      words.push(run.toLowerCase());
      if (!isQuery && parts.length > 1) words.push(...parts.map((part) => part.toLowerCase()));
    }
  }
  return words;
}

/** Returns the value by which a list is sorted, and the uid. */
export type Place = readonly [value: number | string, uid: string];

export function placeOf(session: ListedSession, sort: SessionSort): Place {
  const { digest, meta, name, key, uid } = session;
  switch (sort) {
    case "updated":
      return [session.updatedAt, uid];
    case "created":
      return [session.createdAt, uid];
    case "tokens":
      return [digest.totalTokens, uid];
    case "cost":
      return [digest.costUsd ?? -1, uid];
    case "name":
      return [(meta.displayName ?? name ?? meta.label ?? key).toLowerCase(), uid];
  }
}

/** Numbers are in descending order, and names in ascending order. */
export function comparePlaces([a, one]: Place, [b, other]: Place): number {
  if (a === b) return one === other ? 0 : one > other ? -1 : 1;
  return a < b === (typeof a === "string") ? -1 : 1;
}

export function cursorOf(sort: SessionSort, place: Place): string {
  return Buffer.from(JSON.stringify([sort, ...place])).toString("base64url");
}

export function placeIn(cursor: string): readonly [string, ...Place] | null {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString()) as [string, ...Place];
  } catch {
    return null;
  }
}

export function isListed(record: SessionRecord, query: SessionQuery): boolean {
  const { meta, kind, key, sessionId, name } = record;
  if (key === "global" && query.includeGlobal !== true) return false;
  if (key === "unknown" && query.includeUnknown !== true) return false;
  if ((meta.archived === true) !== (query.archived === true)) return false;
  if (query.kinds !== undefined && query.kinds.length > 0 && !query.kinds.includes(kind)) return false;
  if (query.uids?.includes(record.uid) === false) return false;
  if (query.channels?.includes(channelOf(record)) === false) return false;
  if (query.label !== undefined && meta.label !== query.label) return false;
  if (query.activeSince !== undefined && record.updatedAt < query.activeSince) return false;
  if (query.spawnedBy !== undefined && ![query.spawnedBy].flat().includes(meta.spawnedBy ?? "")) return false;
  if (query.forkedFrom?.includes(meta.forkedFrom?.sessionId ?? "") === false) return false;
  const names = [key, sessionId, name, meta.label, meta.displayName].join("\n").toLowerCase();
  return query.text === undefined || names.includes(query.text.toLowerCase());
}

export function matching(lookup: Lookup): (row: Row) => boolean {
  return (row) => {
    switch (lookup.by) {
      case "key":
        return row.key === lookup.key;
      case "uid":
        return row.uid === lookup.uid;
      case "label":
        return row.meta.label === lookup.label && row.agentId === lookup.agentId;
      case "prefix":
        return row.tree.header.id.startsWith(lookup.prefix);
      case "spawnId": {
        const parsed = parseKey(row.key);
        return "spawnId" in parsed && parsed.spawnId === lookup.spawnId;
      }
      case "sessionId":
        return hasId(row, lookup.sessionId);
    }
  };
}

export function pageOf(tree: SessionTree, { along, before, after, limit }: EntryRange): EntryPage {
  const entries = along === "branch" ? tree.path() : [...tree.entries()];
  const placeOf = (id: string) => {
    const place = entries.findIndex((entry) => entry.id === id);
    return place === -1 ? missing(id) : place;
  };
  const from = after === undefined ? 0 : placeOf(after) + 1;
  const to = before === undefined ? entries.length : placeOf(before);
  const start = after === undefined ? Math.max(from, to - limit) : from;
  const end = after === undefined ? to : Math.min(to, from + limit);
  const page = entries.slice(start, end);
  const isEmpty = page.length === 0;
  const more = { hasEarlier: !isEmpty && start > 0, hasLater: !isEmpty && end < entries.length };
  return { entries: page, ...more, leafId: tree.leafId };
}

export function patched(meta: SessionMeta, changes: MetaPatch): SessionMeta {
  for (const [field, value] of Object.entries(changes)) {
    const isSame = JSON.stringify(meta[field] ?? null) === JSON.stringify(value ?? null);
    if (writtenOnce.includes(field) && meta[field] !== undefined && !isSame)
      conflict(`${field} is written once`);
    if (field === "label" && value !== null && String(value).trim() === "") invalid("The label is empty");
  }
  const next = Object.entries({ ...meta, ...changes }).filter(([, value]) => (value ?? null) !== null);
  return Object.fromEntries(next) as SessionMeta;
}

export function tombstone(line: string): string {
  const { type, id, parentId, timestamp, message } = JSON.parse(line);
  const { content: _content, ...kept } = message ?? {};
  const text = [{ type: "text", text: "[redacted]" }];
  const place = { type, id, parentId, timestamp, skein: { redacted: new Date().toISOString() } };
  return JSON.stringify({ ...place, message: { ...kept, content: text } });
}

export function isRedacted(entry: Entry): boolean {
  return JSON.stringify(entry).includes('"redacted":"');
}

export function idIn(line: string): string {
  return line === "" ? "" : String(JSON.parse(line).id);
}

export function lastSaid(entries: readonly Entry[]): number {
  const said = entries.filter(
    (entry) =>
      !["label", "session_info"].includes(entry.type) &&
      !(entry.type === "custom" && entry.customType.startsWith("skein.")),
  );
  return Math.max(0, ...said.map(({ timestamp }) => Date.parse(timestamp)));
}

export function treeOf(log: string): SessionTree {
  return SessionTree.from(parseSession(log));
}

export function idOf({ sessionId }: SessionInit): { id?: string } {
  return sessionId === undefined ? {} : { id: sessionId };
}

export function hasId({ tree }: Row, sessionId: string): boolean {
  return tree.header.id.toLowerCase() === sessionId.toLowerCase();
}

export function isIn({ agentId }: Scope, row: { readonly agentId: string }): boolean {
  return agentId === undefined || agentId === row.agentId;
}

export function orNull<T, U>(value: T | null, map: (value: T) => U): U | null {
  return value === null ? null : map(value);
}

export function checkFence(fence: (() => boolean) | undefined, sessionId: string): void {
  if (fence?.() === false) throw new SkeinError("fenced", { sessionId });
}

export function missing(name: string): never {
  throw new SkeinError("not_found", { what: "Session", name, advice: "Check its name" });
}

export function conflict(problem: string): never {
  throw new SkeinError("conflict", { problem, advice: "Read it again, and decide anew" });
}

export function invalid(problem: string): never {
  throw new SkeinError("invalid_arguments", { problem, advice: "Correct it" });
}
