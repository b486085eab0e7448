import type { EntryDraft } from "../core/seal.ts";
import { cutText } from "../core/text.ts";
import { ClaudeChains } from "./claude-code-chain.ts";
import { claudeCompaction, keptBy } from "./claude-code-compaction.ts";
import type { ClaudeFile, ClaudeLine } from "./claude-code-lines.ts";
import {
  answerDraft,
  callsIn,
  leftOutFields,
  mergeAnswers,
  modelOf,
  thinkingLevelOf,
  userDrafts,
} from "./claude-code-messages.ts";
import { isTitle } from "./claude-code-name.ts";
import type { CollectedEntry } from "./entry-collector.ts";
import { EntryCollector } from "./entry-collector.ts";
import type { Losses } from "./imported.ts";
import { objectField, textField } from "./json-lines.ts";
import type { AnswerDraft, ResultDraft } from "./message-drafts.ts";
import { shortType } from "./message-drafts.ts";

/** Turns the chain of a Claude Code session into entries, line by line. */
export class ClaudeReader {
  readonly collector = new EntryCollector();
  readonly chains = new ClaudeChains();
  /** First entries of sub-agents' conversations, with the agent's id if there is one. */
  readonly sidechains: { id: string; agentId: string | null }[] = [];
  /** The last entry of the main conversation. */
  mainEnd: string | null = null;
  #mainLine = 0;
  readonly #file: ClaudeFile;
  readonly #losses: Losses;
  /** A sub-agent's own file has nothing but a sidechain: there it is the conversation. */
  readonly #allSide: boolean;
  readonly #sideIds = new Set<string>();
  readonly #toolNames = new Map<string, string>();
  readonly #levels = new Map<string, string>();
  readonly #fields = new Set<string>();
  #linesWithFields = 0;
  #model: string | null = null;

  constructor(file: ClaudeFile, losses: Losses) {
    this.#file = file;
    this.#losses = losses;
    this.#allSide = !file.lines.some(({ uuid, sidechain }) => uuid !== null && !sidechain);
  }

  read(line: ClaudeLine): void {
    if (line.uuid !== null) this.chains.place(line.uuid, this.#entryFor(line));
    else if (!isTitle(line.type)) this.#leaveOut(line, bookkeeping(line.type));
  }

  /** At the end: what was left out of the lines that were read. */
  reportFields(): void {
    const what = "A line's fields that our entries have no place for were left out.";
    const names = cutText([...this.#fields].toSorted().join(", "), 300);
    if (this.#linesWithFields > 0) this.#losses.add(what, names, this.#linesWithFields);
  }

  /** The entry that those who name this line as their parent hang on. */
  #entryFor(line: ClaudeLine): string | null {
    const isMessage = objectField(line.value, "message") !== null;
    if (line.type === "user" && isMessage) return this.#user(line);
    if (line.type === "assistant" && isMessage) return this.#answer(line);
    if (line.type === "system") return this.#system(line);
    if (line.type === "attachment") return this.#attachment(line);
    return this.#leaveOut(line, bookkeeping(line.type));
  }

  #user(line: ClaudeLine): string | null {
    if (line.value.isCompactSummary === true) return this.#summary(line);
    this.#noteFields(line);
    const { results, said } = userDrafts(line, (id) => this.#toolNames.get(id) ?? "unknown", this.#losses);
    let end = this.#parentOf(line);
    for (const result of results) end = this.#result(line, result, end);
    return said === null ? end : this.#say(line, said, end);
  }

  /** A result follows the other results of its answer; a second one for the same call begins a branch. */
  #result(line: ClaudeLine, draft: ResultDraft, parent: string | null): string {
    const chain = this.chains.at(parent);
    const { toolCallId } = draft.message;
    const answers = chain?.open.delete(toolCallId) === true;
    const again = !answers && this.#toolNames.has(toolCallId);
    const item = this.#add(line, draft, again ? parent : this.chains.behind(parent));
    if (chain !== null && answers) this.chains.extend(chain, item.id);
    return item.id;
  }

  #say(line: ClaudeLine, draft: EntryDraft, parent: string | null): string {
    const behind = this.chains.behind(parent);
    const level = thinkingLevelOf(line);
    if (level === null || level === (this.#levels.get(behind ?? "") ?? "off"))
      return this.#add(line, draft, behind).id;
    const change = { type: "thinking_level_change", thinkingLevel: level } as const;
    const changed = this.#add(line, change, behind, `${line.uuid}.thinking`);
    return this.#add(line, draft, changed.id).id;
  }

  #answer(line: ClaudeLine): string {
    this.#noteFields(line);
    const parent = this.#parentOf(line);
    const messageId = textField(objectField(line.value, "message") ?? {}, "id");
    this.#model = modelOf(line) ?? this.#model;
    const draft = answerDraft(line, this.#model, this.#losses);
    const calls = callsIn(draft.message.content);
    let chain = this.chains.at(parent);
    if (chain !== null && messageId !== null && chain.messageId === messageId) {
      mergeAnswers(chain.head.draft as AnswerDraft, draft, this.#losses);
    } else chain = this.chains.begin(this.#add(line, draft, this.chains.behind(parent)), messageId);
    for (const { id, name } of calls) {
      this.#toolNames.set(id, name);
      chain.open.add(id);
    }
    return chain.head.id;
  }

  #system(line: ClaudeLine): string | null {
    const { subtype, level } = line.value;
    const content = textField(line.value, "content");
    if (subtype === "compact_boundary") return this.#boundary(line);
    if (subtype === "microcompact_boundary")
      return this.#leaveOut(line, "Results that Claude Code had taken out of its context are whole again.");
    if (content === null)
      return this.#leaveOut(line, `A note of Claude Code on "${shortType(String(subtype))}" was left out.`);
    this.#noteFields(line);
    const parent = this.chains.behind(this.#parentOf(line));
    if (subtype !== "local_command")
      return this.#aside(line, "claude-code.system", { subtype, content, level }, parent);
    const customType = "claude-code.local_command";
    return this.#add(line, { type: "custom_message", customType, content, display: true }, parent).id;
  }

  /** What was typed while the model was busy reaches the session in this way alone. */
  #attachment(line: ClaudeLine): string {
    this.#noteFields(line);
    const attachment = objectField(line.value, "attachment") ?? {};
    const { type, prompt, commandMode } = attachment;
    if (type !== "queued_command" || (typeof prompt !== "string" && !Array.isArray(prompt))) {
      const kind = shortType(String(type));
      this.#losses.add(`An attachment of type "${kind}" is kept, but no model is shown it.`);
      const parent = this.chains.behind(this.#parentOf(line));
      return this.#aside(line, "claude-code.attachment", attachment, parent);
    }
    const isMeta = commandMode !== undefined && commandMode !== "prompt";
    const spoken = { ...line, value: { ...line.value, isMeta, message: { content: prompt } } };
    const { said } = userDrafts(spoken, () => "unknown", this.#losses);
    const empty: EntryDraft = { type: "message", message: { role: "user", content: "" } };
    return this.#say(line, said ?? empty, this.#parentOf(line));
  }

  #boundary(line: ClaudeLine): string {
    this.#noteFields(line);
    const logical = textField(line.value, "logicalParentUuid") ?? "";
    const known = [line.parentUuid ?? "", logical].find((uuid) => this.chains.has(uuid));
    const end = this.#isSide(line) ? null : this.mainEnd;
    const parent = this.chains.behind(known === undefined ? end : this.chains.entryOf(known));
    const summary = this.#file.summaries.get(line.uuid ?? "");
    if (summary === undefined) {
      const what = "The summary of a compaction is lost: what came before it stays in the context.";
      this.#losses.add(what, line.uuid ?? "");
      return this.#aside(line, "claude-code.compact_boundary", line.value.compactMetadata, parent);
    }
    const kept = keptBy(line, this.chains, this.collector, parent);
    if (kept.lost) {
      const what = "Messages that a compaction kept whole are in the session, but not in the context.";
      this.#losses.add(what, line.uuid ?? "");
    }
    const item = this.#add(line, claudeCompaction(line, summary, kept.first, this.#losses), parent);
    for (const id of kept.entries) this.chains.move(id, item.id);
    return this.chains.begin(item).head.id;
  }

  /** A summary whose boundary was met is in its compaction; else it stands for what came before it in this file. */
  #summary(line: ClaudeLine): string | null {
    const boundary = this.#file.boundaries.get(line) ?? "";
    if (this.chains.has(boundary)) return this.chains.entryOf(boundary);
    this.#noteFields(line);
    const parent = this.chains.behind(this.#parentOf(line));
    const compaction = claudeCompaction(line, line, null, this.#losses);
    if (parent !== null) return this.#add(line, compaction, parent).id;
    const content = compaction.type === "compaction" ? compaction.summary : "";
    const customType = "claude-code.summary";
    return this.#add(line, { type: "custom_message", customType, content, display: true }, parent).id;
  }

  /** Kept in its place, shown to no model. What belongs to the entry before it goes on behind it. */
  #aside(line: ClaudeLine, customType: string, data: unknown, parent: string | null): string {
    const chain = this.chains.at(parent);
    const item = this.#add(line, { type: "custom", customType, data }, parent);
    if (chain !== null && chain.tail === parent) this.chains.extend(chain, item.id);
    return item.id;
  }

  #leaveOut(line: ClaudeLine, what: string): string | null {
    this.#losses.add(what, line.uuid ?? `line ${line.line}`);
    return line.uuid === null ? null : this.#parentOf(line);
  }

  /** The entry that a line hangs on, not yet looking at what else hangs there. */
  #parentOf(line: ClaudeLine): string | null {
    const last = this.collector.last?.id ?? null;
    if (line.parentUuid === undefined) return last;
    if (line.parentUuid === null) return null;
    if (this.chains.has(line.parentUuid)) return this.chains.entryOf(line.parentUuid);
    if (line.behindDamage) return last;
    this.#losses.add("A line whose parent is not in the file begins a branch of its own.", line.uuid ?? "");
    return null;
  }

  #add(line: ClaudeLine, draft: EntryDraft, parentId: string | null, id = line.uuid ?? ""): CollectedEntry {
    const item = this.collector.add(draft, { id, parentId, time: line.time });
    const before = this.#levels.get(parentId ?? "");
    const level = draft.type === "thinking_level_change" ? draft.thinkingLevel : before;
    if (level !== undefined) this.#levels.set(item.id, level);
    if (!this.#isSide(line)) this.#mainGoesOn(line, item.id);
    else {
      const begins = parentId === null || !this.#sideIds.has(parentId);
      if (begins) this.sidechains.push({ id: item.id, agentId: textField(line.value, "agentId") });
      this.#sideIds.add(item.id);
    }
    return item;
  }

  /** In the order of the file, whatever order the lines are taken in. */
  #mainGoesOn({ line }: ClaudeLine, id: string): void {
    if (line < this.#mainLine) return;
    this.#mainLine = line;
    this.mainEnd = id;
  }

  #isSide(line: ClaudeLine): boolean {
    return line.sidechain && !this.#allSide;
  }

  #noteFields(line: ClaudeLine): void {
    const fields = leftOutFields(line);
    for (const field of fields) this.#fields.add(field);
    if (fields.length > 0) this.#linesWithFields += 1;
  }
}

function bookkeeping(type: string): string {
  return `A line of type "${shortType(type)}" holds no message and was left out.`;
}
