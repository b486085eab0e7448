/** Session text for tests, created without the code under test. */

export const header = {
  type: "session",
  version: 3,
  id: "s",
  timestamp: "2026-01-01T00:00:00.000Z",
  cwd: "/w",
};

export function userLine(id: string, parentId: string | null, text = id): Record<string, unknown> {
  const message = { role: "user", content: text, timestamp: 1 };
  return { type: "message", id, parentId, timestamp: "2026-01-01T00:00:00.000Z", message };
}

export function sessionText(...lines: readonly (object | string)[]): string {
  return [header, ...lines]
    .map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
    .map((line) => `${line}\n`)
    .join("");
}

export function assistantMessage(text: string) {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  return {
    role: "assistant" as const,
    content: [{ type: "text" as const, text }],
    api: "anthropic-messages",
    provider: "anthropic",
    model: "claude-x",
    usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost },
    stopReason: "stop" as const,
    timestamp: 2,
  };
}

/** Returns the lines of a text outside all fences, according to Markdown's rules. Throws if a fence is not closed. */
export function linesOutsideFences(text: string): string[] {
  const outside: string[] = [];
  let fence: string | null = null;
  for (const line of text.split("\n")) {
    const mark = line.match(/^(`{3,}|~{3,})\s*$/)?.[1];
    if (fence === null && mark !== undefined) fence = mark;
    else if (fence !== null && mark !== undefined && mark[0] === fence[0] && mark.length >= fence.length)
      fence = null;
    else if (fence === null) outside.push(line);
  }
  if (fence !== null) throw new Error(`The fence ${fence} is not closed.`);
  return outside;
}
