import type { Steps } from "../core/slices.ts";
import type { CodexLine } from "./codex-lines.ts";
import { readCodexLines } from "./codex-lines.ts";
import { CodexReader } from "./codex-reader.ts";
import type { Origin } from "./entry-collector.ts";
import type { ImportedSession, ImportOptions } from "./imported.ts";
import { Losses, stemOf } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { countField, lineBytes, objectField, textField, timeField } from "./json-lines.ts";
import { shortType } from "./message-drafts.ts";

/**
 * A rollout of Codex (`~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`): with an envelope around each line, as
 * since September 2025; without, as before; and the single document of the first versions.
 */
export function* importCodex(
  source: string | Uint8Array,
  options: ImportOptions = {},
): Steps<ImportedSession> {
  const losses = new Losses();
  const lines = yield* readCodexLines(source, losses);
  const reader = new CodexReader(losses);
  const eventsOnly = !lines.some(({ type }) => type === "response_item");
  for (const line of lines) {
    readLine(line, reader, losses, eventsOnly);
    yield lineBytes;
  }
  const { collector, name } = reader;
  const time = collector.last?.time ?? 0;
  if (reader.tip !== (collector.last?.id ?? null)) {
    const place = { id: "imported-leaf", parentId: reader.tip, time };
    reader.tip = collector.add({ type: "custom", customType: "skein.leaf" }, place).id;
  }
  if (name !== null)
    collector.add({ type: "session_info", name }, { id: "imported-name", parentId: reader.tip, time });
  reader.reportFields();
  const origin = originOf(reader, lines, options);
  const tree = yield* collector.finish(origin, losses);
  const { sessionId, cwd, startedAt } = origin;
  return { source: "codex", sessionId, cwd, startedAt, name: tree.name, tree, notKept: losses.list() };
}

function readLine(line: CodexLine, reader: CodexReader, losses: Losses, eventsOnly: boolean): void {
  const { type, payload } = line;
  switch (type) {
    case "session_meta":
      readMeta(line, reader, losses);
      return;
    case "turn_context":
      reader.settings(line);
      return;
    case "response_item":
      reader.item(line);
      return;
    case "event_msg":
      readEvent(line, reader, losses, eventsOnly);
      return;
    case "compacted":
      reader.compaction(line);
      return;
    case "inter_agent_communication": {
      const content = textField(payload, "content");
      if (content === null) break;
      const customType = "codex.inter_agent_communication";
      reader.add(line, { type: "custom_message", customType, content, display: true });
      return;
    }
  }
  losses.add(`A line of type "${shortType(type)}" holds no message and was left out.`, `line ${line.line}`);
}

/** A rollout that was forked holds the headers of those it came from as well. */
function readMeta({ payload, line }: CodexLine, reader: CodexReader, losses: Losses): void {
  if (Object.keys(reader.meta).length > 0) {
    losses.add("The header of another session in the file was passed over.", `line ${line}`);
    return;
  }
  reader.meta = payload;
  const instructions = payload.instructions ?? payload.base_instructions;
  if (instructions !== undefined && instructions !== null)
    losses.add("The instructions that Codex gave the model were left out.", `line ${line}`);
}

/** Events that hold what the items of a conversation hold too. */
const mirrors = new Map<string, (payload: JsonObject) => JsonObject>([
  ["user_message", ({ message }) => ({ type: "message", role: "user", content: message })],
  ["agent_message", ({ message }) => ({ type: "message", role: "assistant", content: message })],
  ["agent_reasoning", ({ text }) => ({ type: "reasoning", summary: [text] })],
]);

function readEvent(line: CodexLine, reader: CodexReader, losses: Losses, eventsOnly: boolean): void {
  const { payload } = line;
  const type = String(payload.type);
  const asItem = eventsOnly ? mirrors.get(type) : undefined;
  if (asItem !== undefined) {
    reader.item({ ...line, payload: asItem(payload) });
    return;
  }
  switch (type) {
    case "token_count":
      reader.tokens(line);
      return;
    case "thread_rolled_back":
      reader.rollBack(countField(payload, "num_turns"));
      return;
    case "thread_name_updated":
      reader.name = textField(payload, "thread_name")?.trim() || null;
      return;
    case "turn_aborted":
      reader.add(line, {
        type: "custom",
        customType: "codex.turn_aborted",
        data: { reason: payload.reason },
      });
      return;
    case "error":
      reader.add(line, { type: "custom", customType: "codex.error", data: { message: payload.message } });
      return;
    case "exec_command_end":
      reader.commandEnd(line);
  }
  losses.add(
    `An event of type "${shortType(type)}" was left out: the items hold the conversation.`,
    `line ${line.line}`,
  );
}

function originOf(reader: CodexReader, lines: readonly CodexLine[], options: ImportOptions): Origin {
  const { meta } = reader;
  const fromName = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.exec(stemOf(options.file) ?? "")?.[0];
  const git = objectField(meta, "git") ?? {};
  const about = {
    version: textField(meta, "cli_version"),
    gitBranch: textField(git, "branch"),
    forkedFrom: textField(meta, "forked_from_id"),
    parent: textField(meta, "parent_thread_id"),
  };
  return {
    source: "codex",
    sessionId: textField(meta, "id") || fromName || stemOf(options.file) || "imported",
    cwd: textField(meta, "cwd") ?? reader.cwd ?? "",
    startedAt: timeField(meta, "timestamp") ?? lines[0]?.time ?? 0,
    about: Object.fromEntries(
      Object.entries(about).filter((each): each is [string, string] => each[1] !== null),
    ),
  };
}
