import type { Result } from "skein/client";

export type AccessAction = Result<"access.matrix">["allowed"][number][number][number];

/** In the order of the strands of a cell, from the top. */
export const actions = ["list", "history", "send", "status"] as const satisfies readonly AccessAction[];

export const actionWords: Record<AccessAction, string> = {
  list: "list",
  history: "read",
  send: "message",
  status: "inspect",
};

/** `a, b and c`. */
export function joinWords(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
