import { stringifyJson } from "../core/json.ts";
import type { Content } from "../core/messages.ts";
import { textOf } from "../core/messages.ts";
import type { EntryDraft } from "../core/seal.ts";
import { isRecord } from "../core/shape.ts";
import { cutText } from "../core/text.ts";
import {
  callBlock,
  codexContent,
  cwdIn,
  failed,
  isInjected,
  reasoningBlock,
  resultOf,
} from "./codex-items.ts";
import type { CodexLine } from "./codex-lines.ts";
import type { CollectedEntry } from "./entry-collector.ts";
import { EntryCollector } from "./entry-collector.ts";
import type { Losses } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { countField, listField, objectField, textField } from "./json-lines.ts";
import type { AnswerDraft, ResultDraft } from "./message-drafts.ts";
import { noCost, shortType } from "./message-drafts.ts";

const usedFields = new Set(
  "type role content summary encrypted_content name namespace arguments call_id input action output tools".split(
    " ",
  ),
);

/** Turns a Codex rollout into entries: a line, but for what was rolled back, which is left as a branch. */
export class CodexReader {
  readonly collector = new EntryCollector();
  meta: JsonObject = {};
  name: string | null = null;
  /** From the first message, for versions that say it nowhere else. */
  cwd: string | null = null;
  /** Where the conversation stands. */
  tip: string | null = null;
  readonly #losses: Losses;
  readonly #callNames = new Map<string, string>();
  readonly #results = new Map<string, ResultDraft>();
  readonly #exitCodes = new Map<string, number>();
  readonly #fields = new Set<string>();
  /** What users said on the way to the tip, the last one last. */
  readonly #prompts: CollectedEntry[] = [];
  #linesWithFields = 0;
  /** The answer that is still being written. */
  #open: AnswerDraft["message"] | null = null;
  /** The answer that the next token count is of. */
  #uncounted: AnswerDraft["message"] | null = null;
  #model: string | null = null;
  #level: string | null = null;
  #tokens = 0;

  constructor(losses: Losses) {
    this.#losses = losses;
  }

  /** At the end: what was left out of the items that were read. */
  reportFields(): void {
    const what = "An item's fields that our entries have no place for were left out.";
    const names = cutText([...this.#fields].toSorted().join(", "), 300);
    if (this.#linesWithFields > 0) this.#losses.add(what, names, this.#linesWithFields);
  }

  settings(line: CodexLine): void {
    const { payload } = line;
    this.#losses.add("A turn's settings other than model and effort were left out.", `line ${line.line}`);
    const model = textField(payload, "model");
    const effort = textField(payload, "effort");
    const level = effort === "none" ? "off" : effort;
    if (model !== null && model !== this.#model) {
      this.#model = model;
      this.add(line, { type: "model_change", provider: this.#provider, modelId: model });
    }
    if (level === null || level === this.#level) return;
    this.#level = level;
    this.add(line, { type: "thinking_level_change", thinkingLevel: level }, `line-${line.line}.thinking`);
  }

  item(line: CodexLine): void {
    const { payload } = line;
    const type = String(payload.type);
    this.#noteFields(payload);
    const call = callBlock(payload);
    if (call !== null) {
      const answer = this.#answer(line);
      answer.content.push(call);
      answer.stopReason = "toolUse";
      this.#callNames.set(call.id, call.name);
    } else if (type === "message") this.#message(line);
    else if (type === "reasoning") this.#reasoning(line);
    else if (type.endsWith("_output")) this.#result(line);
    else if (type === "web_search_call" || type === "image_generation_call") {
      this.#losses.add(`An item of type "${type}" is kept, but no model is shown it.`);
      this.#answer(line).content.push({ ...payload } as never);
    } else this.#losses.add(`An item of type "${shortType(type)}" was left out.`, `line ${line.line}`);
  }

  #reasoning(line: CodexLine): void {
    const block = reasoningBlock(line.payload);
    if (block.thinking !== "" || block.thinkingSignature !== undefined)
      this.#answer(line).content.push(block);
    else this.#losses.add("Reasoning that says nothing was left out.", `line ${line.line}`);
  }

  #message(line: CodexLine): void {
    const { role } = line.payload;
    const blocks = codexContent(line.payload.content, this.#losses);
    if (role === "assistant") {
      this.#answer(line).content.push(...(blocks as never[]));
      return;
    }
    const content = onlyText(blocks);
    const text = textOf(content);
    this.cwd ??= cwdIn(text);
    if (role === "user" && !isInjected(text)) {
      this.#prompts.push(this.add(line, { type: "message", message: { role: "user", content } }));
      return;
    }
    const customType = role === "developer" || role === "system" ? `codex.${role}` : "codex.context";
    this.add(line, { type: "custom_message", customType, content, display: false });
  }

  /** Reasoning, text and calls that follow one another are one answer. */
  #answer(line: CodexLine): AnswerDraft["message"] {
    if (this.#open !== null) return this.#open;
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: noCost };
    const message: AnswerDraft["message"] = {
      role: "assistant",
      content: [],
      api: "openai-responses",
      provider: this.#provider,
      // Nothing here means that the model is not known: a context then names none.
      model: this.#model ?? "",
      usage,
      stopReason: "stop",
    };
    this.add(line, { type: "message", message });
    this.#open = message;
    this.#uncounted = message;
    return message;
  }

  #result(line: CodexLine): void {
    const toolCallId = textField(line.payload, "call_id");
    if (toolCallId === null) {
      this.#losses.add("A result that names no call was left out.", `line ${line.line}`);
      return;
    }
    const { isError, ...rest } = resultOf(line.payload, this.#losses);
    const toolName = this.#callNames.get(toolCallId) ?? "unknown";
    const bad = isError || failed(this.#exitCodes.get(toolCallId));
    const draft: ResultDraft = {
      type: "message",
      message: { role: "toolResult", toolCallId, toolName, ...rest, isError: bad },
    };
    this.#results.set(toolCallId, draft);
    this.add(line, draft);
  }

  /** The tokens of the answer before; a count that comes again, or belongs to a compaction, is of none. */
  tokens(line: CodexLine): void {
    const usage = objectField(objectField(line.payload, "info") ?? {}, "last_token_usage");
    if (usage === null || this.#uncounted === null)
      this.#losses.add("A count of tokens that is of no answer was left out.", `line ${line.line}`);
    if (usage === null) return;
    const all = countField(usage, "input_tokens");
    const cacheRead = countField(usage, "cached_input_tokens");
    const output = countField(usage, "output_tokens");
    const cacheWrite = countField(usage, "cache_write_input_tokens");
    const totalTokens = countField(usage, "total_tokens") || all + output;
    this.#tokens = totalTokens;
    if (this.#uncounted === null) return;
    const input = Math.max(0, all - cacheRead - cacheWrite);
    this.#uncounted.usage = { input, output, cacheRead, cacheWrite, totalTokens, cost: noCost };
    this.#uncounted = null;
    this.#open = null;
  }

  /** A command's end says how it went, before or after its result. */
  commandEnd({ payload }: CodexLine): void {
    const callId = textField(payload, "call_id");
    const exitCode = payload.exit_code;
    if (callId === null || typeof exitCode !== "number") return;
    this.#exitCodes.set(callId, exitCode);
    const known = this.#results.get(callId);
    if (known !== undefined && failed(exitCode)) known.message.isError = true;
  }

  /** Goes back to before what the user said last, so many times; what is left stays as a branch. */
  rollBack(turns: number): void {
    const [first] = this.#prompts.splice(Math.max(0, this.#prompts.length - turns));
    if (turns < 1 || first === undefined) return;
    this.tip = first.parentId;
    this.#open = null;
    this.#uncounted = null;
  }

  compaction(line: CodexLine): void {
    const summary = textField(line.payload, "message") ?? "";
    if (summary.trim() === "") {
      const what = "The summary of a compaction cannot be read: what came before it stays in the context.";
      this.#losses.add(what, `line ${line.line}`);
      this.add(line, { type: "custom", customType: "codex.compacted" });
      return;
    }
    const repeated = listField(line.payload, "replacement_history").filter(
      (item) => isRecord(item) && item.role === "user" && !stringifyJson(item).includes(inJson(summary)),
    ).length;
    if (repeated > 0) {
      const what =
        "A message that Codex repeats behind a compaction stands before it alone, outside the context.";
      this.#losses.add(what, `line ${line.line}`, repeated);
    }
    this.add(line, { type: "compaction", summary, firstKeptEntryId: null, tokensBefore: this.#tokens });
    this.#uncounted = null;
  }

  /** Behind the tip, which it becomes; the answer before it is complete. */
  add(line: CodexLine, draft: EntryDraft, id = `line-${line.line}`): CollectedEntry {
    this.#open = null;
    const item = this.collector.add(draft, { id, parentId: this.tip, time: line.time });
    this.tip = item.id;
    return item;
  }

  get #provider(): string {
    return textField(this.meta, "model_provider") || "openai";
  }

  #noteFields(payload: JsonObject): void {
    const fields = Object.keys(payload).filter((field) => !usedFields.has(field) && payload[field] !== null);
    for (const field of fields) this.#fields.add(field);
    if (fields.length > 0) this.#linesWithFields += 1;
  }
}

/** A text as it stands inside JSON. */
function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** One text is written as a string, as a person's prompt usually is. */
function onlyText(blocks: Exclude<Content, string>): Content {
  const [first] = blocks;
  return blocks.length === 1 && first?.type === "text" ? first.text : blocks;
}
