import type { Steps } from "../core/slices.ts";
import type { ClaudeFile, ClaudeLine } from "./claude-code-lines.ts";
import { readClaudeLines } from "./claude-code-lines.ts";
import { claudeName } from "./claude-code-name.ts";
import { ClaudeReader } from "./claude-code-reader.ts";
import type { Origin } from "./entry-collector.ts";
import type { ImportedSession, ImportOptions } from "./imported.ts";
import { Losses, stemOf } from "./imported.ts";
import { lineBytes, textField } from "./json-lines.ts";

/**
 * A session of Claude Code (`~/.claude/projects/<folder>/<session id>.jsonl`), as versions 1.0 to 2.1 write it.
 * Branches stay branches; a sub-agent's lines in the same file become a branch with a label.
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
  addBooks(file, reader, claudeName(file, losses));
  reader.reportFields();
  const origin = originOf(file, options);
  const tree = yield* reader.collector.finish(origin, losses);
  const { sessionId, cwd, startedAt } = origin;
  return { source: "claude-code", sessionId, cwd, startedAt, name: tree.name, tree, notKept: losses.list() };
}

/** The leaf where the conversation stands, labels on what sub-agents said, and the name, behind everything else. */
function addBooks(file: ClaudeFile, reader: ClaudeReader, name: string | null): void {
  const { collector, sidechains } = reader;
  const time = collector.last?.time ?? 0;
  const leaf = leafIn(file, reader);
  let tip = collector.last?.id ?? null;
  const add = (id: string, draft: Parameters<typeof collector.add>[0], parentId = tip) => {
    tip = collector.add(draft, { id, parentId, time }).id;
  };
  if (leaf !== tip) add("imported-leaf", { type: "custom", customType: "skein.leaf" }, leaf);
  for (const [index, { id: targetId, agentId }] of sidechains.entries()) {
    const label = agentId === null ? "sub-agent" : `sub-agent ${agentId}`;
    add(`imported-label-${index + 1}`, { type: "label", targetId, label });
  }
  if (name !== null) add("imported-name", { type: "session_info", name });
}

/** Where Claude Code says that it stands, if it says so behind the last message; else the end of the conversation. */
function leafIn(file: ClaudeFile, { chains, mainEnd }: ClaudeReader): string | null {
  const last = file.lines.findLast(({ uuid, type }) => uuid !== null || type === "last-prompt");
  const leafUuid = last?.type === "last-prompt" ? textField(last.value, "leafUuid") : null;
  return leafUuid !== null && chains.entryOf(leafUuid) !== null
    ? chains.behind(chains.entryOf(leafUuid))
    : mainEnd;
}

function originOf(file: ClaudeFile, options: ImportOptions): Origin {
  const chained = file.lines.filter(({ uuid }) => uuid !== null);
  const first = (field: string) => chained.map(({ value }) => textField(value, field)).find(Boolean) ?? "";
  const about = Object.fromEntries(
    ["version", "gitBranch"].map((field) => [field, first(field)]).filter(([, value]) => value !== ""),
  );
  return {
    source: "claude-code",
    sessionId: sessionIdIn(file.lines, chained, options),
    cwd: first("cwd"),
    startedAt: chained.reduce((earliest, { time }) => Math.min(earliest, time), chained[0]?.time ?? 0),
    about,
  };
}

/** A file that goes on from another begins with that one's lines: the last session named is its own. */
function sessionIdIn(
  lines: readonly ClaudeLine[],
  chained: readonly ClaudeLine[],
  options: ImportOptions,
): string {
  const stem = stemOf(options.file);
  const agent = chained.find(({ sidechain }) => sidechain);
  const agentId = agent === undefined ? null : textField(agent.value, "agentId");
  if (agentId !== null && chained.every(({ sidechain }) => sidechain)) return `agent-${agentId}`;
  const named = lines.map(({ value }) => textField(value, "sessionId")).filter((id) => id !== null);
  if (stem !== null && named.includes(stem)) return stem;
  return named.at(-1) ?? stem ?? "imported";
}
