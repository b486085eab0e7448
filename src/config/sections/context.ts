import { choice, choiceWithOff, duration, numberBetween, optional, text } from "../settings/kinds.ts";
import { group, list, setting } from "../settings/setting.ts";

export const compaction = group("What happens when a session outgrows the model's context window.", {
  mode: setting(
    "How older messages are summarized: all at once (`default`), or in parts that fit, with a check of the summary (`safeguard`).",
    choice("safeguard", "default"),
    "safeguard",
  ),
  maxHistoryShare: setting(
    "For `safeguard`: the fraction of the context window that a summary request may fill, from 0.1 to 0.9.",
    numberBetween(0.1, 0.9),
    0.5,
  ),
});

const tools = group("The tools whose results may be pruned.", {
  allow: list(
    "Tools whose results may be pruned, as globs (`*` and `?`). If empty, the results of all tools may be pruned.",
    text,
  ),
  deny: list("Tools whose results are never pruned, as globs. Overrides `allow`.", text),
});

export const contextPruning = group(
  "When old tool results are shortened in requests. The session keeps them in full.",
  {
    mode: setting(
      "When old tool results are shortened in requests: never (`off`), or once the prompt cache has expired (`cache-ttl`).",
      choiceWithOff("cache-ttl"),
      "off",
    ),
    ttl: setting(
      "How long the provider's prompt cache is assumed to stay valid after a request.",
      duration,
      300_000,
    ),
    tools,
  },
);

export const search = group("How messages are found.", {
  embed: optional(
    "The embedding model that lets searches also find messages by meaning, for example `openai/text-embedding-3-small`. The text of every message is sent to it, with secrets masked. `null` means that searches use words alone.",
    text,
    "words alone",
  ),
});
