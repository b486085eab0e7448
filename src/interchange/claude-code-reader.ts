import { textOf } from "../core/messages.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { ClaudeFile, ClaudeLine } from "./claude-code-lines.ts";
import { isTitle } from "./claude-code-lines.ts";
import {
  answerDraft,
  callsIn,
  mergeAnswers,
  modelOf,
  thinkingLevelOf,
  toContent,
  userDrafts,
} from "./claude-code-messages.ts";
import type { AnswerDraft, CollectedEntry, Losses, ResultDraft } from "./imported-session.ts";
import { EntryCollector, shortType, UnusedFields } from "./imported-session.ts";
import { countField, listField, objectField, textField } from "./json-lines.ts";

/** Converts the lines of a Claude Code session to entries, one by one. */
export class ClaudeReader {
  readonly collector = new EntryCollector();
  readonly unusedFields = new UnusedFields(
    "type uuid parentUuid logicalParentUuid timestamp sessionId cwd message isSidechain isMeta isCompactSummary " +
      "toolUseResult compactMetadata subtype content level attachment agentId isApiErrorMessage costUSD " +
      "thinkingMetadata isVisibleInTranscriptOnly version gitBranch",
  );
  /** The first entry in each sub-agent's conversation. */
  readonly sidechains: { id: string; agentId: string | null }[] = [];
  readonly #chains = new ClaudeChains();
  /** The last entry in the main conversation, and its line. */
  #mainEnd: string | null = null;
  #mainLine = 0;
  readonly #file: ClaudeFile;
  readonly #losses: Losses;
  /** A sub-agent's own file contains only a sidechain, which is therefore the main conversation. */
  readonly #isAllSidechain: boolean;
  readonly #sidechainIds = new Set<string>();
  readonly #toolNames = new Map<string, string>();
  readonly #levels = new Map<string, string>();
  #model: string | null = null;

  constructor(file: ClaudeFile, losses: Losses) {
    this.#file = file;
    this.#losses = losses;
    this.#isAllSidechain = !file.lines.some(({ uuid, isSidechain }) => uuid !== null && !isSidechain);
  }

  read(line: ClaudeLine): void {
    if (line.uuid !== null) this.#chains.setEntry(line.uuid, this.#entryFor(line));
    else if (!isTitle(line.type)) this.#skip(line);
  }

  /** The leaf that Claude Code recorded after the last message or, if there is none, the end of the conversation. */
  get leaf(): string | null {
    const last = this.#file.lines.findLast(({ uuid, type }) => uuid !== null || type === "last-prompt");
    const leafUuid = last?.type === "last-prompt" ? (textField(last.value, "leafUuid") ?? "") : "";
    const leaf = this.#chains.entryOf(leafUuid);
    return leaf === null ? this.#mainEnd : this.#chains.endAfter(leaf);
  }

  /** Returns the parent entry for the line's children. */
  #entryFor(line: ClaudeLine): string | null {
    const isMessage = objectField(line.value, "message") !== null;
    if (line.type === "user" && isMessage) return this.#readUser(line);
    if (line.type === "assistant" && isMessage) return this.#readAnswer(line);
    if (line.type === "system") return this.#readSystem(line);
    if (line.type === "attachment") return this.#readAttachment(line);
    return this.#skip(line);
  }

  #readUser(line: ClaudeLine): string | null {
    if (line.value.isCompactSummary === true) return this.#readSummary(line);
    this.unusedFields.check(line.value);
    const toolName = (id: string) => this.#toolNames.get(id) ?? "unknown";
    const { results, prompt } = userDrafts(line, toolName, this.#losses);
    let end = this.#parentOf(line);
    for (const result of results) end = this.#addResult(line, result, end);
    return prompt === null ? end : this.#addPrompt(line, prompt, end);
  }

  /** Adds an answer's results one after the other. A second result for the same call starts a branch. */
  #addResult(line: ClaudeLine, draft: ResultDraft, parent: string | null): string {
    const chain = this.#chains.at(parent);
    const { toolCallId } = draft.message;
    const isAwaited = chain?.openCalls.delete(toolCallId) === true;
    const isRepeated = !isAwaited && this.#toolNames.has(toolCallId);
    const { id } = this.#add(line, draft, isRepeated ? parent : this.#chains.endAfter(parent));
    if (chain !== null && isAwaited) this.#chains.extend(chain, id);
    return id;
  }

  #addPrompt(line: ClaudeLine, draft: EntryDraft, parent: string | null): string {
    const end = this.#chains.endAfter(parent);
    const level = thinkingLevelOf(line);
    if (level === null || level === (this.#levels.get(end ?? "") ?? "off"))
      return this.#add(line, draft, end).id;
    const change = { type: "thinking_level_change", thinkingLevel: level } as const;
    const changed = this.#add(line, change, end, `${line.uuid}.thinking`);
    return this.#add(line, draft, changed.id).id;
  }

  #readAnswer(line: ClaudeLine): string {
    this.unusedFields.check(line.value);
    const parent = this.#parentOf(line);
    const messageId = textField(objectField(line.value, "message") ?? {}, "id");
    this.#model = modelOf(line) ?? this.#model;
    const draft = answerDraft(line, this.#model, this.#losses);
    const calls = callsIn(draft);
    let chain = this.#chains.at(parent);
    if (chain !== null && messageId !== null && chain.messageId === messageId)
      mergeAnswers(chain.head.draft as AnswerDraft, draft, this.#losses);
    else chain = this.#chains.begin(this.#add(line, draft, this.#chains.endAfter(parent)), messageId);
    for (const { id, name } of calls) {
      this.#toolNames.set(id, name);
      chain.openCalls.add(id);
    }
    return chain.head.id;
  }

  #readSystem(line: ClaudeLine): string | null {
    const { subtype, level } = line.value;
    const content = textField(line.value, "content");
    if (subtype === "compact_boundary") return this.#readBoundary(line);
    if (subtype === "microcompact_boundary")
      return this.#skip(
        line,
        "Tool results that Claude Code had cleared from its context were restored in full.",
      );
    if (content === null)
      return this.#skip(line, `A Claude Code system note of type "${shortType(subtype)}" was left out.`);
    this.unusedFields.check(line.value);
    const parent = this.#chains.endAfter(this.#parentOf(line));
    if (subtype !== "local_command")
      return this.#addNote(line, "claude-code.system", { subtype, content, level }, parent);
    const customType = "claude-code.local_command";
    return this.#add(line, { type: "custom_message", customType, content, display: true }, parent).id;
  }

  /** A prompt typed while the model was busy is in the file only as an attachment. */
  #readAttachment(line: ClaudeLine): string {
    this.unusedFields.check(line.value);
    const attachment = objectField(line.value, "attachment") ?? {};
    const { type, prompt, commandMode } = attachment;
    if (type !== "queued_command" || (typeof prompt !== "string" && !Array.isArray(prompt))) {
      this.#losses.add(`An attachment of type "${shortType(type)}" is kept, but is not sent to models.`);
      const parent = this.#chains.endAfter(this.#parentOf(line));
      return this.#addNote(line, "claude-code.attachment", attachment, parent);
    }
    const isMeta = commandMode !== undefined && commandMode !== "prompt";
    const asUser = { ...line, value: { ...line.value, isMeta, message: { content: prompt } } };
    const { prompt: draft } = userDrafts(asUser, () => "unknown", this.#losses);
    const empty: EntryDraft = { type: "message", message: { role: "user", content: "" } };
    return this.#addPrompt(line, draft ?? empty, this.#parentOf(line));
  }

  #readBoundary(line: ClaudeLine): string {
    this.unusedFields.check(line.value);
    const logical = textField(line.value, "logicalParentUuid") ?? "";
    const known = [line.parentUuid ?? "", logical].find((uuid) => this.#chains.has(uuid));
    const end = this.#isSide(line) ? null : this.#mainEnd;
    const parent = this.#chains.endAfter(known === undefined ? end : this.#chains.entryOf(known));
    const summary = this.#file.summaries.get(line.uuid ?? "");
    if (summary === undefined) {
      const what = "A compaction has no summary, so the messages before it stay in the context.";
      this.#losses.add(what, line.uuid ?? "");
      return this.#addNote(line, "claude-code.compact_boundary", line.value.compactMetadata, parent);
    }
    const kept = keptUuids(line).flatMap((uuid) => this.#chains.entryOf(uuid) ?? []);
    const first = this.#firstKept(kept, parent);
    if (kept.length > 0 && first === null) {
      const what = "Messages that a compaction kept in full are in the session but not in the context.";
      this.#losses.add(what, line.uuid ?? "");
    }
    const item = this.#add(line, compactionDraft(line, summary, first, this.#losses), parent);
    for (const id of kept) this.#chains.move(id, item.id);
    return this.#chains.begin(item).head.id;
  }

  /**
   * Returns the oldest kept entry. Skein's compactions can keep only the end of a branch, so `null` is returned if
   * anything else was kept.
   */
  #firstKept(kept: readonly string[], parent: string | null): string | null {
    const [first, last] = [kept[0], kept.at(-1)];
    if (first === undefined || last === undefined || this.#chains.endAfter(last) !== parent) return null;
    return Array.from(this.collector.ancestors(parent)).some(({ id }) => id === first) ? first : null;
  }

  /** A summary belongs to its boundary. A summary without a boundary replaces everything before it. */
  #readSummary(line: ClaudeLine): string | null {
    const boundary = this.#file.boundaries.get(line) ?? "";
    if (this.#chains.has(boundary)) return this.#chains.entryOf(boundary);
    this.unusedFields.check(line.value);
    const parent = this.#chains.endAfter(this.#parentOf(line));
    const compaction = compactionDraft(line, line, null, this.#losses);
    if (parent !== null) return this.#add(line, compaction, parent).id;
    const content = compaction.summary;
    const customType = "claude-code.summary";
    return this.#add(line, { type: "custom_message", customType, content, display: true }, parent).id;
  }

  /**
   * Adds a line that keeps its position but is never sent to a model. Results for the preceding answer come after the
   * line.
   */
  #addNote(line: ClaudeLine, customType: string, data: unknown, parent: string | null): string {
    const chain = this.#chains.at(parent);
    const { id } = this.#add(line, { type: "custom", customType, data }, parent);
    if (chain !== null && chain.tail === parent) this.#chains.extend(chain, id);
    return id;
  }

  #skip(line: ClaudeLine, what?: string): string | null {
    const text = what ?? `A line of type "${shortType(line.type)}" contains no message and was left out.`;
    this.#losses.add(text, line.uuid ?? `line ${line.line}`);
    return line.uuid === null ? null : this.#parentOf(line);
  }

  #parentOf(line: ClaudeLine): string | null {
    const last = this.collector.last?.id ?? null;
    if (line.parentUuid === undefined) return last;
    if (line.parentUuid === null) return null;
    if (this.#chains.has(line.parentUuid)) return this.#chains.entryOf(line.parentUuid);
    if (line.isAfterDamage) return last;
    this.#losses.add("A line whose parent is missing starts a separate branch.", line.uuid ?? "");
    return null;
  }

  #add(line: ClaudeLine, draft: EntryDraft, parentId: string | null, id = line.uuid ?? ""): CollectedEntry {
    const item = this.collector.add(draft, { id, parentId, time: line.time });
    const before = this.#levels.get(parentId ?? "");
    const level = draft.type === "thinking_level_change" ? draft.thinkingLevel : before;
    if (level !== undefined) this.#levels.set(item.id, level);
    if (this.#isSide(line)) {
      const isFirst = parentId === null || !this.#sidechainIds.has(parentId);
      if (isFirst) this.sidechains.push({ id: item.id, agentId: textField(line.value, "agentId") });
      this.#sidechainIds.add(item.id);
    } else if (line.line >= this.#mainLine) {
      // Lines are not read in file order, but the last line in the file ends the conversation.
      this.#mainLine = line.line;
      this.#mainEnd = item.id;
    }
    return item;
  }

  #isSide(line: ClaudeLine): boolean {
    return line.isSidechain && !this.#isAllSidechain;
  }
}

function keptUuids(boundary: ClaudeLine): string[] {
  const about = objectField(boundary.value, "compactMetadata") ?? {};
  const named = listField(objectField(about, "preservedMessages") ?? {}, "uuids");
  if (named.length > 0) return named.filter((uuid) => typeof uuid === "string");
  const segment = objectField(about, "preservedSegment") ?? {};
  return ["headUuid", "tailUuid"].flatMap((field) => textField(segment, field) ?? []);
}

function compactionDraft(
  boundary: ClaudeLine,
  summary: ClaudeLine,
  firstKeptEntryId: string | null,
  losses: Losses,
): Extract<EntryDraft, { type: "compaction" }> {
  const about = objectField(boundary.value, "compactMetadata");
  const content = objectField(summary.value, "message")?.content;
  return {
    type: "compaction",
    summary: textOf(toContent(content, losses)),
    firstKeptEntryId,
    tokensBefore: countField(about ?? {}, "preTokens"),
    ...(about === null ? {} : { details: { "claude-code": about } }),
  };
}

/**
 * An entry with the results and notes that follow it. Claude Code writes an answer as several lines and attaches each
 * result to its call's line. Here, the answer is a single entry, followed by all its results.
 */
interface Chain {
  readonly head: CollectedEntry;
  /** The provider's ID for an answer. Lines with the same ID belong to one answer. */
  readonly messageId: string | null;
  readonly openCalls: Set<string>;
  tail: string;
}

/** Maps uuids to entries, and entries to the parent of their next child. */
class ClaudeChains {
  readonly #entries = new Map<string, string | null>();
  readonly #chains = new Map<string, Chain>();
  /** Children of entries that a compaction kept are attached after the compaction. */
  readonly #movedTo = new Map<string, string>();

  /** `null` if the line was skipped and had no parent. */
  setEntry(uuid: string, entryId: string | null): void {
    this.#entries.set(uuid, entryId);
  }

  has(uuid: string): boolean {
    return this.#entries.has(uuid);
  }

  entryOf(uuid: string): string | null {
    return this.#entries.get(uuid) ?? null;
  }

  begin(head: CollectedEntry, messageId: string | null = null): Chain {
    const chain = { head, messageId, openCalls: new Set<string>(), tail: head.id };
    this.#chains.set(head.id, chain);
    return chain;
  }

  at(entryId: string | null): Chain | null {
    return this.#chains.get(entryId ?? "") ?? null;
  }

  extend(chain: Chain, entryId: string): void {
    chain.tail = entryId;
    this.#chains.set(entryId, chain);
  }

  move(entryId: string, compactionId: string): void {
    this.#movedTo.set(entryId, compactionId);
  }

  /** Returns the entry to use as parent where the source refers to `entryId`. */
  endAfter(entryId: string | null): string | null {
    if (entryId === null) return null;
    let id = entryId;
    for (;;) {
      const tail: string = this.#chains.get(id)?.tail ?? id;
      const next = this.#movedTo.get(tail) ?? this.#movedTo.get(id);
      if (next === undefined) return tail;
      id = next;
    }
  }
}
