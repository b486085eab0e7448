import { textOf } from "../core/messages.ts";
import type { EntryDraft } from "../core/seal.ts";
import { contentBlocks } from "./claude-code-blocks.ts";
import type { ClaudeChains } from "./claude-code-chain.ts";
import type { ClaudeLine } from "./claude-code-lines.ts";
import type { EntryCollector } from "./entry-collector.ts";
import type { Losses } from "./imported.ts";
import { countField, listField, objectField, textField } from "./json-lines.ts";

/** What a compaction kept whole. */
export interface Kept {
  /** The oldest entry of it; `null`: nothing that a compaction of ours can keep. */
  readonly first: string | null;
  readonly entries: readonly string[];
  /** It kept something, but not the end of the conversation, which is all that ours can keep. */
  readonly lost: boolean;
}

/** Entries before the boundary that it names as kept; `parent` is the entry that the compaction hangs on. */
export function keptBy(
  boundary: ClaudeLine,
  chains: ClaudeChains,
  collector: EntryCollector,
  parent: string | null,
): Kept {
  const entries = keptUuids(boundary).flatMap((uuid) => chains.entryOf(uuid) ?? []);
  const [first, last] = [entries[0], entries.at(-1)];
  if (first === undefined || last === undefined) return { first: null, entries, lost: false };
  const isEnd = chains.behind(last) === parent;
  const onBranch = isEnd && Array.from(collector.upwards(parent)).some(({ id }) => id === first);
  return { first: onBranch ? first : null, entries, lost: !onBranch };
}

function keptUuids(boundary: ClaudeLine): string[] {
  const about = objectField(boundary.value, "compactMetadata") ?? {};
  const named = listField(objectField(about, "preservedMessages") ?? {}, "uuids");
  if (named.length > 0) return named.filter((uuid) => typeof uuid === "string");
  const segment = objectField(about, "preservedSegment") ?? {};
  return ["headUuid", "tailUuid"].flatMap((field) => textField(segment, field) ?? []);
}

/** `first` is the oldest entry that stays in the context; `null`: none does. */
export function claudeCompaction(
  boundary: ClaudeLine,
  summary: ClaudeLine,
  first: string | null,
  losses: Losses,
): EntryDraft {
  const about = objectField(boundary.value, "compactMetadata");
  const content = objectField(summary.value, "message")?.content;
  return {
    type: "compaction",
    summary: textOf(contentBlocks(content, losses)),
    firstKeptEntryId: first,
    tokensBefore: countField(about ?? {}, "preTokens"),
    ...(about === null ? {} : { details: { "claude-code": about } }),
  };
}
