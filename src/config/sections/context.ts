import { choice, choiceWithOff, duration, numberBetween, text } from "../settings/kinds.ts";
import { group, list, setting } from "../settings/setting.ts";

export const compaction = group("What happens when a session outgrows the model's context window.", {
  mode: setting(
    "How older messages are summarized: all at once (default), or in parts that fit, with a check of the summary (safeguard).",
    choice("safeguard", "default"),
    "safeguard",
  ),
  maxHistoryShare: setting(
    "With safeguard: the fraction of the context window that one request for a summary may fill, 0.1 to 0.9.",
    numberBetween(0.1, 0.9),
    0.5,
  ),
});

const tools = group("Which tools' results may be pruned.", {
  allow: list("Tools whose results may be pruned, as globs (* and ?); empty: all.", text),
  deny: list("Tools whose results are never pruned, as globs; wins over allow.", text),
});

export const contextPruning = group(
  "When old tool results are shortened in requests; the session keeps them.",
  {
    mode: setting(
      "When old tool results are shortened in requests: never (off), or after the prompt cache has expired (cache-ttl).",
      choiceWithOff("cache-ttl"),
      "off",
    ),
    ttl: setting("How long after a request the provider's prompt cache counts as valid.", duration, 300_000),
    tools,
  },
);
