export const thinkingLevels = ["off", "minimal", "low", "medium", "high", "xhigh"] as const;

/** A model's reasoning effort. */
export type ThinkingLevel = (typeof thinkingLevels)[number];

/** Returns `null` if the value is not a thinking level. */
export function readThinkingLevel(value: unknown): ThinkingLevel | null {
  return thinkingLevels.find((level) => level === value) ?? null;
}
