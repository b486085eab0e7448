/** Session text for tests, spelled out without the code under test. */

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
