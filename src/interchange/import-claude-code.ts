import type { Steps } from "../core/slices.ts";
import type { ClaudeFile } from "./claude-code-lines.ts";
import { findTitle, readClaudeLines } from "./claude-code-lines.ts";
import { ClaudeReader } from "./claude-code-reader.ts";
import type { ImportedSession, ImportOptions, ImportOrigin } from "./imported-session.ts";
import { fileStem, Losses } from "./imported-session.ts";
import { lineBytes, textField } from "./json-lines.ts";

/**
 * Imports a Claude Code session (`~/.claude/projects/<folder>/<session id>.jsonl`) written by versions 1.0 to 2.1.
 * Branches are preserved. A sub-agent's lines in the same file become a labeled branch.
 */
export function* importClaudeCode(
  source: string | Uint8Array,
  options: ImportOptions = {},
): Steps<ImportedSession> {
  const losses = new Losses();
  const file = yield* readClaudeLines(source, losses);
  const reader = new ClaudeReader(file, losses);
  for (const line of file.lines) {
    reader.read(line);
    yield lineBytes;
  }
  const labels = reader.sidechains.map(({ id: targetId, agentId }) => ({
    targetId,
    label: agentId === null ? "sub-agent" : `sub-agent ${agentId}`,
  }));
  reader.collector.addState({ leaf: reader.leaf, name: findTitle(file, losses), labels });
  reader.unusedFields.report(losses);
  return yield* reader.collector.finish(originOf(file, options), losses);
}

function originOf({ lines }: ClaudeFile, options: ImportOptions): ImportOrigin {
  const chained = lines.filter(({ uuid }) => uuid !== null);
  const first = (field: string) => chained.map(({ value }) => textField(value, field)).find(Boolean) ?? null;
  return {
    source: "claude-code",
    sessionId: findSessionId(lines, options),
    cwd: first("cwd") ?? "",
    startedAt: chained.reduce((earliest, { time }) => Math.min(earliest, time), chained[0]?.time ?? 0),
    about: { version: first("version"), gitBranch: first("gitBranch") },
  };
}

/**
 * A resumed session's file starts with lines from the earlier session, so the last ID in the file is the session's own.
 */
function findSessionId(lines: ClaudeFile["lines"], options: ImportOptions): string {
  const stem = fileStem(options.file);
  const chained = lines.filter(({ uuid }) => uuid !== null);
  const agent = chained.find(({ isSidechain }) => isSidechain);
  const agentId = agent === undefined ? null : textField(agent.value, "agentId");
  if (agentId !== null && chained.every(({ isSidechain }) => isSidechain)) return `agent-${agentId}`;
  const named = lines.map(({ value }) => textField(value, "sessionId")).filter((id) => id !== null);
  if (stem !== null && named.includes(stem)) return stem;
  return named.at(-1) ?? stem ?? "imported";
}
