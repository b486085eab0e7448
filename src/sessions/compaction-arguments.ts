import { SkeinError } from "../core/errors.ts";
import { maxHistoryShareLimit, minHistoryShare } from "../transcript/compaction/chunks.ts";
import { minContextWindow } from "../transcript/compaction/limits.ts";
import type { CompactionOptions } from "./compaction-outcome.ts";

/** Refuses options that would have a summary made of nothing, before anything is read or asked. */
export function checkCompactionOptions(options: CompactionOptions): void {
  const { contextWindow, mode, trigger, maxHistoryShare = minHistoryShare, compactions = 0 } = options;
  const isWindow = Number.isFinite(contextWindow) && contextWindow >= minContextWindow;
  if (!isWindow) refuse("contextWindow", `Give the model's window in tokens, ${minContextWindow} or more`);
  if (!["safeguard", "default"].includes(mode)) refuse("mode", "Use safeguard or default");
  if (!["threshold", "manual", "overflow"].includes(trigger))
    refuse("trigger", "Use threshold, manual or overflow");
  const isShare = maxHistoryShare >= minHistoryShare && maxHistoryShare <= maxHistoryShareLimit;
  if (typeof maxHistoryShare !== "number" || !isShare)
    refuse(
      "maxHistoryShare",
      `Use a number from ${minHistoryShare} to ${maxHistoryShareLimit}, or leave it out`,
    );
  if (!Number.isSafeInteger(compactions) || compactions < 0)
    refuse("compactions", "Give how many compactions there were, or leave it out");
}

function refuse(name: keyof CompactionOptions, advice: string): never {
  throw new SkeinError("invalid_arguments", { problem: `The compaction's ${name} will not do`, advice });
}
