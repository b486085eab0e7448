import { choice, optional, orNone, text, textLike, wholeNumber } from "../settings/kinds.ts";
import type { Setting } from "../settings/setting.ts";
import { group, setting, table } from "../settings/setting.ts";
import { anyName } from "./tables.ts";

const limit = (about: string, meaning: string) => optional(about, wholeNumber(1), meaning);

const dm = group("Settings for direct sessions with one user.", {
  historyLimit: limit(
    "Maximum number of user turns sent to a model from this user's direct sessions. Defaults to `dmHistoryLimit`.",
    "the value of dmHistoryLimit",
  ),
});

const dms = table("Direct sessions, by user.", anyName("<user>", "a user ID on the channel"), dm);

type ChannelType = "webhook" | "cli" | "console";

const type = optional(
  "The channel type: a program that uses HTTP (`webhook`), a terminal (`cli`), or the `console`. `null` means that the channel is only a name.",
  choice<ChannelType>("webhook", "cli", "console"),
  "a channel that is only a name",
);
const secret: Setting<string | null> = {
  ...optional(
    "For `webhook`: the secret that signs messages in both directions, preferably a variable.",
    text,
    "none",
  ),
  secret: true,
};

const userOfPeer = setting(
  "The user that this peer's messages belong to. `null` means the unnamed user.",
  orNone(text, "the unnamed user"),
);
const users = table(
  "The users that peers' messages belong to, by peer.",
  anyName("<peer>", "a peer ID on the channel"),
  userOfPeer,
);

const channel = group("A channel.", {
  type,
  secret,
  url: optional(
    "For `webhook`: the URL to send messages to. Use a variable if the URL is secret. `null` means that replies stay in the session.",
    textLike("^https?://[^\\s/]\\S*$", "a URL that starts with http:// or https://"),
    "no outgoing messages",
  ),
  user: optional(
    "The user that all messages on this channel belong to. `null` means the user that `users` lists for the peer; a peer that is not listed is a separate user.",
    text,
    "a user per peer",
  ),
  users,
  historyLimit: limit(
    "Maximum number of user turns sent to a model from the channel's groups and rooms. `null` means no limit.",
    "no limit",
  ),
  dmHistoryLimit: limit(
    "Maximum number of user turns sent to a model from the channel's direct sessions. `null` means no limit.",
    "no limit",
  ),
  dms,
});

export const channels = table(
  "Connections to people and external programs, by the channel name used in session keys.",
  anyName("<channel>", "a channel name"),
  channel,
);
