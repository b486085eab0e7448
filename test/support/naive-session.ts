/** The definition of path, leaf and context in its simplest form. The tree's tests use it as their oracle. */

export interface Line {
  type: string;
  id: string;
  parentId: string | null;
  timestamp: string;
  [field: string]: unknown;
  message?: { role: string; provider?: string; model?: string };
  targetId?: string;
  label?: string;
  name?: string;
  customType?: string;
  firstKeptEntryId?: string;
  summary?: string;
}

export function naivePath(lines: readonly Line[], leafId: string | null): Line[] {
  const line = lines.find((each) => each.id === leafId);
  return line === undefined ? [] : [...naivePath(lines, line.parentId), line];
}

export function naiveLeaf(lines: readonly Line[], tipId: string | null): string | null {
  const isConversation = (line: Line) =>
    line.type !== "label" && line.type !== "session_info" && !line.customType?.startsWith("skein.");
  return naivePath(lines, tipId).findLast(isConversation)?.id ?? null;
}

export function naiveContext(lines: readonly Line[], leafId: string | null) {
  const path = naivePath(lines, leafId);
  const last = path.findLastIndex((line) => line.type === "compaction");
  const compaction = path[last];
  const first = path.findIndex((line) => line.id === compaction?.firstKeptEntryId);
  const kept = compaction === undefined ? path : path.slice(first);
  const speaks = kept.filter(
    (line) =>
      line.type === "message" ||
      line.type === "custom_message" ||
      (line.type === "branch_summary" && line.summary),
  );
  const models = path.flatMap((line) => {
    if (line.type === "model_change") return { provider: line.provider, modelId: line.modelId };
    const { role, provider, model } = line.message ?? { role: "" };
    return role === "assistant" ? { provider, modelId: model } : [];
  });
  return {
    entryIds: [...(compaction === undefined ? [] : [compaction.id]), ...speaks.map((line) => line.id)],
    model: models.at(-1) ?? null,
    thinkingLevel: path.findLast((line) => line.type === "thinking_level_change")?.thinkingLevel ?? "off",
  };
}
