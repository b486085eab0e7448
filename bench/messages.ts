import type { AppendItem } from "../src/store/contract.ts";

/** A conversation between two parties, in each peer's format. */

export type Role = "user" | "assistant";

export function roleOf(index: number): Role {
  return index % 2 === 0 ? "user" : "assistant";
}

const cost = { input: 0.001, output: 0.002, cacheRead: 0, cacheWrite: 0, total: 0.003 };
const usage = { input: 900, output: 250, cacheRead: 0, cacheWrite: 0, totalTokens: 1150, cost };

/** In the format that pi and Skein share. */
export function piMessage(index: number, text: string, timestamp: number) {
  const content = [{ type: "text" as const, text }];
  if (roleOf(index) === "user") return { role: "user" as const, content, timestamp };
  return {
    role: "assistant" as const,
    content,
    api: "anthropic-messages",
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    usage,
    stopReason: "stop" as const,
    timestamp,
  };
}

export function item(index: number, text: string): AppendItem {
  return { draft: { type: "message", message: piMessage(index, text, 1_790_000_000_000 + index) } };
}

export function items(from: number, count: number, textOf: (index: number) => string): AppendItem[] {
  return Array.from({ length: count }, (_, index) => item(from + index, textOf(from + index)));
}
