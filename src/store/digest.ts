import type { Entry } from "../core/entries.ts";
import { copiedFrom, encodeEntry, lineOf } from "../core/entries.ts";
import type { AssistantMessage, Message, UserMessage } from "../core/messages.ts";
import { isNote, textOf } from "../core/messages.ts";
import { cutText } from "../core/text.ts";
import type { SessionTree } from "../core/tree.ts";
import type { SessionDigest } from "./contract.ts";

/** Computes digests entry by entry, in log order. Used by every store. */

const longestSummary = 200;

export const emptyDigest: SessionDigest = {
  entries: 0,
  bytes: 0,
  model: null,
  thinkingLevel: null,
  totalTokens: 0,
  costUsd: 0,
  contextTokens: null,
  compactions: 0,
  summary: null,
  lastInputAt: null,
};

/** Adds an entry. Entries older than `createdAt` were copied by a fork. */
export function addToDigest(digest: SessionDigest, entry: Entry, createdAt: number): SessionDigest {
  const next = withAnyEntry(digest, entry, createdAt);
  if (copiedFrom(lineOf(entry)) === null) return next;
  // The original has already been counted, so only the context size becomes unknown.
  const { entries, model, thinkingLevel } = next;
  return { ...digest, entries, model, thinkingLevel, contextTokens: null };
}

function withAnyEntry(digest: SessionDigest, entry: Entry, createdAt: number): SessionDigest {
  const next = { ...digest, entries: digest.entries + 1 };
  switch (entry.type) {
    case "model_change":
      return { ...next, model: { provider: entry.provider, modelId: entry.modelId } };
    case "thinking_level_change":
      return { ...next, thinkingLevel: entry.thinkingLevel };
    case "compaction": {
      const summary = goalOf(entry.summary) ?? next.summary;
      return { ...next, summary, compactions: next.compactions + 1, contextTokens: null };
    }
    case "message":
      if (entry.message.role === "user") return withInput(next, entry.message, timeOf(entry));
      if (entry.message.role === "assistant")
        return withAnswer(next, entry.message, timeOf(entry) >= createdAt);
      return next;
    default:
      return next;
  }
}

export function digestOfTree(tree: SessionTree, createdAt: number): SessionDigest {
  let digest: SessionDigest = { ...emptyDigest, bytes: lineBytes(JSON.stringify(tree.header)) };
  for (const entry of tree.entries()) digest = addLineToDigest(digest, entry, createdAt);
  return digest;
}

/** Adds an entry and the size of its line. */
export function addLineToDigest(digest: SessionDigest, entry: Entry, createdAt: number): SessionDigest {
  const bytes = digest.bytes + lineBytes(encodeEntry(entry));
  return { ...addToDigest(digest, entry, createdAt), bytes };
}

function lineBytes(line: string): number {
  return Buffer.byteLength(line) + 1;
}

/** Whether the message was written by a person rather than by another session or the system. */
export function isRealInput(message: Message): message is UserMessage {
  if (message.role !== "user") return false;
  return message.provenance === undefined || message.provenance.kind === "external_user";
}

function withInput(digest: SessionDigest, message: UserMessage, time: number): SessionDigest {
  const text = digest.summary === null ? firstLine(textOf(message.content)) : null;
  return {
    ...digest,
    ...(text === null ? {} : { summary: text }),
    ...(time > 0 && isRealInput(message) ? { lastInputAt: time } : {}),
  };
}

function withAnswer(digest: SessionDigest, message: AssistantMessage, isOurs: boolean): SessionDigest {
  const { provider, model, usage } = message;
  const named = provider && model && !isNote(message) ? { model: { provider, modelId: model } } : {};
  if (usage === undefined) return { ...digest, ...named };
  const tokens = toTokenCount(usage.totalTokens);
  const cost = message.skein?.costKnown === false ? undefined : usage.cost?.total;
  const spent = isOurs
    ? {
        totalTokens: toTokenCount(digest.totalTokens + tokens),
        costUsd: cost === undefined || digest.costUsd === null ? null : toCost(digest.costUsd + toCost(cost)),
      }
    : {};
  return { ...digest, ...named, ...spent, contextTokens: tokens > 0 ? tokens : digest.contextTokens };
}

/** Other programs can report any number. The index accepts only integers. */
export function toTokenCount(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.min(Math.round(value), Number.MAX_SAFE_INTEGER) : 0;
}

/** In US dollars. The index sorts costs as integers, in millionths of a dollar. */
const maxCost = 9_000_000_000;

function toCost(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.min(value, maxCost) : 0;
}

/** Returns the first line under the heading "Goal". */
function goalOf(summary: string): string | null {
  const [, text = ""] = /^#{1,6}[ \t]+Goal\b[^\n]*\n+([^\n]+)/im.exec(summary) ?? [];
  return firstLine(text);
}

function firstLine(text: string): string | null {
  const line = text
    .slice(0, 4 * longestSummary)
    .replace(/\s+/g, " ")
    .trim();
  if (line === "") return null;
  return line.length > longestSummary ? `${cutText(line, longestSummary - 1)}…` : line;
}

function timeOf(entry: Entry): number {
  return Date.parse(entry.timestamp) || 0;
}
