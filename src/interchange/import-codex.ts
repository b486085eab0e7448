import { isRecord } from "../core/is-record.ts";
import { stringifyJson } from "../core/json.ts";
import type { Content } from "../core/messages.ts";
import { textOf } from "../core/messages.ts";
import type { EntryDraft } from "../core/seal.ts";
import type { Steps } from "../core/slices.ts";
import type { CodexLine } from "./codex-items.ts";
import {
  findCwd,
  hasFailed,
  isInjected,
  readCodexLines,
  toContent,
  toThinkingBlock,
  toToolCall,
  toToolResult,
} from "./codex-items.ts";
import type {
  AnswerDraft,
  CollectedEntry,
  ImportedSession,
  ImportOptions,
  ImportOrigin,
  ResultDraft,
} from "./imported-session.ts";
import { EntryCollector, fileStem, Losses, noCost, shortType, UnusedFields } from "./imported-session.ts";
import type { JsonObject } from "./json-lines.ts";
import { countField, lineBytes, listField, objectField, textField, timeField } from "./json-lines.ts";

/**
 * Imports a Codex rollout (`~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`). Supports lines with an envelope
 * (since September 2025), lines without one (before that), and the single document that the first versions wrote.
 */
export function* importCodex(
  source: string | Uint8Array,
  options: ImportOptions = {},
): Steps<ImportedSession> {
  const losses = new Losses();
  const lines = yield* readCodexLines(source, losses);
  const hasItems = lines.some(({ type }) => type === "response_item");
  const reader = new CodexReader(losses, hasItems);
  for (const line of lines) {
    reader.read(line);
    yield lineBytes;
  }
  reader.collector.addState({ leaf: reader.tip, name: reader.name });
  reader.unusedFields.report(losses);
  const origin = originOf(reader, options, lines[0]?.time ?? 0);
  return yield* reader.collector.finish(origin, losses);
}

function originOf({ meta, cwd }: CodexReader, options: ImportOptions, firstTime: number): ImportOrigin {
  const stem = fileStem(options.file);
  const idInName = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.exec(stem ?? "")?.[0];
  return {
    source: "codex",
    sessionId: textField(meta, "id") || idInName || stem || "imported",
    cwd: textField(meta, "cwd") ?? cwd ?? "",
    startedAt: timeField(meta, "timestamp") ?? firstTime,
    about: {
      version: textField(meta, "cli_version"),
      gitBranch: textField(objectField(meta, "git") ?? {}, "branch"),
      forkedFrom: textField(meta, "forked_from_id"),
      parent: textField(meta, "parent_thread_id"),
    },
  };
}

/** Events that repeat conversation items. They are read only in files without items. */
const eventItems = new Map<unknown, (payload: JsonObject) => JsonObject>([
  ["user_message", ({ message }) => ({ type: "message", role: "user", content: message })],
  ["agent_message", ({ message }) => ({ type: "message", role: "assistant", content: message })],
  ["agent_reasoning", ({ text }) => ({ type: "reasoning", summary: [text] })],
]);

/** Converts rollout lines to a sequence of entries. Rolled-back turns become branches. */
class CodexReader {
  readonly collector = new EntryCollector();
  readonly unusedFields = new UnusedFields(
    "type role content summary encrypted_content name namespace arguments call_id input action output tools",
  );
  meta: JsonObject = {};
  name: string | null = null;
  /** From the first message, for versions that do not record it anywhere else. */
  cwd: string | null = null;
  tip: string | null = null;
  readonly #losses: Losses;
  readonly #hasItems: boolean;
  readonly #callNames = new Map<string, string>();
  readonly #results = new Map<string, ResultDraft>();
  readonly #exitCodes = new Map<string, number>();
  /** The user's prompts on the path to the tip. */
  readonly #prompts: CollectedEntry[] = [];
  /** The answer that further items belong to. */
  #open: AnswerDraft["message"] | null = null;
  /** The answer that the next token count applies to. */
  #uncounted: AnswerDraft["message"] | null = null;
  #model: string | null = null;
  #level: string | null = null;
  #tokens = 0;

  constructor(losses: Losses, hasItems: boolean) {
    this.#losses = losses;
    this.#hasItems = hasItems;
  }

  read(line: CodexLine): void {
    const content = textField(line.payload, "content");
    if (line.type === "session_meta") this.#readMeta(line);
    else if (line.type === "turn_context") this.#readSettings(line);
    else if (line.type === "response_item") this.#readItem(line);
    else if (line.type === "event_msg") this.#readEvent(line);
    else if (line.type === "compacted") this.#readCompaction(line);
    else if (line.type === "inter_agent_communication" && content !== null) {
      const customType = "codex.inter_agent_communication";
      this.#add(line, { type: "custom_message", customType, content, display: true });
    } else this.#lose(line, `A line of type "${shortType(line.type)}" contains no message and was left out.`);
  }

  /** A forked rollout also contains the headers of its ancestors. */
  #readMeta(line: CodexLine): void {
    if (Object.keys(this.meta).length > 0) {
      this.#lose(line, "Another session's header in the file was skipped.");
      return;
    }
    this.meta = line.payload;
    const instructions = this.meta.instructions ?? this.meta.base_instructions;
    if (instructions !== undefined && instructions !== null)
      this.#lose(line, "The instructions that Codex gave the model were left out.");
  }

  #readSettings(line: CodexLine): void {
    this.#lose(line, "Turn settings other than the model and effort were left out.");
    const model = textField(line.payload, "model");
    const effort = textField(line.payload, "effort");
    const level = effort === "none" ? "off" : effort;
    if (model !== null && model !== this.#model) {
      this.#model = model;
      this.#add(line, { type: "model_change", provider: this.#provider, modelId: model });
    }
    if (level === null || level === this.#level) return;
    this.#level = level;
    this.#add(line, { type: "thinking_level_change", thinkingLevel: level }, `line-${line.line}.thinking`);
  }

  #readItem(line: CodexLine): void {
    const { payload } = line;
    const type = String(payload.type);
    this.unusedFields.check(payload);
    const call = toToolCall(payload);
    if (call !== null) {
      const answer = this.#answer(line);
      answer.content.push(call);
      answer.stopReason = "toolUse";
      this.#callNames.set(call.id, call.name);
    } else if (type === "message") this.#readMessage(line);
    else if (type === "reasoning") {
      const block = toThinkingBlock(payload);
      if (block.thinking === "" && block.thinkingSignature === undefined)
        this.#lose(line, "Empty reasoning was left out.");
      else this.#answer(line).content.push(block);
    } else if (type.endsWith("_output")) this.#readResult(line);
    else if (type === "web_search_call" || type === "image_generation_call") {
      this.#losses.add(`An item of type "${type}" is kept, but is not sent to models.`);
      this.#answer(line).content.push({ ...payload } as never);
    } else this.#lose(line, `An item of type "${shortType(type)}" was left out.`);
  }

  #readMessage(line: CodexLine): void {
    const { role } = line.payload;
    const blocks = toContent(line.payload.content, this.#losses);
    if (role === "assistant") {
      this.#answer(line).content.push(...(blocks as never[]));
      return;
    }
    const [first] = blocks;
    const content: Content = blocks.length === 1 && first?.type === "text" ? first.text : blocks;
    const text = textOf(content);
    this.cwd ??= findCwd(text);
    if (role === "user" && !isInjected(text)) {
      this.#prompts.push(this.#add(line, { type: "message", message: { role: "user", content } }));
      return;
    }
    const customType = role === "developer" || role === "system" ? `codex.${role}` : "codex.context";
    this.#add(line, { type: "custom_message", customType, content, display: false });
  }

  /** Consecutive reasoning, text and calls form one answer. */
  #answer(line: CodexLine): AnswerDraft["message"] {
    if (this.#open !== null) return this.#open;
    const message: AnswerDraft["message"] = {
      role: "assistant",
      content: [],
      api: "openai-responses",
      provider: this.#provider,
      // An empty model means that the model is unknown. The context then has no model.
      model: this.#model ?? "",
      usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: noCost },
      stopReason: "stop",
    };
    this.#add(line, { type: "message", message });
    this.#open = message;
    this.#uncounted = message;
    return message;
  }

  #readResult(line: CodexLine): void {
    const toolCallId = textField(line.payload, "call_id");
    if (toolCallId === null) {
      this.#lose(line, "A tool result without a call ID was left out.");
      return;
    }
    const { isError, ...result } = toToolResult(line.payload, this.#losses);
    const toolName = this.#callNames.get(toolCallId) ?? "unknown";
    const message = { role: "toolResult", toolCallId, toolName, ...result } as const;
    const hasError = isError || hasFailed(this.#exitCodes.get(toolCallId));
    const draft: ResultDraft = { type: "message", message: { ...message, isError: hasError } };
    this.#results.set(toolCallId, draft);
    this.#add(line, draft);
  }

  #readEvent(line: CodexLine): void {
    const { payload } = line;
    const toItem = this.#hasItems ? undefined : eventItems.get(payload.type);
    if (toItem !== undefined) {
      this.#readItem({ ...line, payload: toItem(payload) });
      return;
    }
    switch (payload.type) {
      case "token_count":
        this.#readTokenCount(line);
        return;
      case "thread_rolled_back":
        this.#rollBack(countField(payload, "num_turns"));
        return;
      case "thread_name_updated":
        this.name = textField(payload, "thread_name")?.trim() || null;
        return;
      case "turn_aborted":
        this.#addNote(line, "codex.turn_aborted", { reason: payload.reason });
        return;
      case "error":
        this.#addNote(line, "codex.error", { message: payload.message });
        return;
      case "exec_command_end":
        this.#readExitCode(payload);
    }
    const type = shortType(payload.type);
    this.#lose(line, `An event of type "${type}" was left out, because the items contain the conversation.`);
  }

  /** A repeated count, or a compaction's count, does not belong to an answer. */
  #readTokenCount(line: CodexLine): void {
    const usage = objectField(objectField(line.payload, "info") ?? {}, "last_token_usage");
    if (usage === null || this.#uncounted === null)
      this.#lose(line, "A token count that does not belong to an answer was left out.");
    if (usage === null) return;
    const total = countField(usage, "input_tokens");
    const cacheRead = countField(usage, "cached_input_tokens");
    const output = countField(usage, "output_tokens");
    const cacheWrite = countField(usage, "cache_write_input_tokens");
    const totalTokens = countField(usage, "total_tokens") || total + output;
    this.#tokens = totalTokens;
    if (this.#uncounted === null) return;
    const input = Math.max(0, total - cacheRead - cacheWrite);
    this.#uncounted.usage = { input, output, cacheRead, cacheWrite, totalTokens, cost: noCost };
    this.#uncounted = null;
    this.#open = null;
  }

  /** The event for the end of a command can come before or after its result. */
  #readExitCode(payload: JsonObject): void {
    const callId = textField(payload, "call_id");
    const exitCode = payload.exit_code;
    if (callId === null || typeof exitCode !== "number") return;
    this.#exitCodes.set(callId, exitCode);
    const result = this.#results.get(callId);
    if (result !== undefined && hasFailed(exitCode)) result.message.isError = true;
  }

  /**
   * Moves back to the position before the prompt that started the last `turns` turns. Those turns remain as a branch.
   */
  #rollBack(turns: number): void {
    const [first] = this.#prompts.splice(Math.max(0, this.#prompts.length - turns));
    if (turns < 1 || first === undefined) return;
    this.tip = first.parentId;
    this.#open = null;
    this.#uncounted = null;
  }

  #readCompaction(line: CodexLine): void {
    const summary = textField(line.payload, "message") ?? "";
    if (summary.trim() === "") {
      this.#lose(line, "A compaction summary is unreadable, so the messages before it stay in the context.");
      this.#add(line, { type: "custom", customType: "codex.compacted" });
      return;
    }
    const escaped = JSON.stringify(summary).slice(1, -1);
    const repeated = listField(line.payload, "replacement_history").filter(
      (item) => isRecord(item) && item.role === "user" && !stringifyJson(item).includes(escaped),
    ).length;
    if (repeated > 0)
      this.#lose(
        line,
        "A message that Codex repeated after a compaction was imported only at its original position, so it is not in the context.",
        repeated,
      );
    this.#add(line, { type: "compaction", summary, firstKeptEntryId: null, tokensBefore: this.#tokens });
    this.#uncounted = null;
  }

  #addNote(line: CodexLine, customType: string, data: unknown): void {
    this.#add(line, { type: "custom", customType, data });
  }

  /** Appends to the tip and closes the open answer. */
  #add(line: CodexLine, draft: EntryDraft, id = `line-${line.line}`): CollectedEntry {
    this.#open = null;
    const item = this.collector.add(draft, { id, parentId: this.tip, time: line.time });
    this.tip = item.id;
    return item;
  }

  #lose(line: CodexLine, what: string, count = 1): void {
    this.#losses.add(what, `line ${line.line}`, count);
  }

  get #provider(): string {
    return textField(this.meta, "model_provider") || "openai";
  }
}
