import { choice, optional, orNone, text, textLike, wholeNumber } from "../settings/kinds.ts";
import type { Setting } from "../settings/setting.ts";
import { group, setting, table } from "../settings/setting.ts";
import { anyName } from "./tables.ts";

const limit = (about: string, meaning: string) => optional(about, wholeNumber(1), meaning);

const dm = group("Direct sessions with one user.", {
  historyLimit: limit(
    "Maximum number of user turns of this user's direct sessions that are sent to a model; null: the value of dmHistoryLimit.",
    "what dmHistoryLimit says",
  ),
});

const dms = table("Direct sessions, by user.", anyName("<user>", "the id of a user on the channel"), dm);

type ChannelType = "webhook" | "cli" | "console";

const type = optional(
  "The type: a program that uses HTTP (webhook), a terminal (cli), the console; null: only a name.",
  choice<ChannelType>("webhook", "cli", "console"),
  "a name only",
);
const secret: Setting<string | null> = {
  ...optional(
    "For a webhook: the secret that signs messages in both directions, preferably a variable.",
    text,
    "none",
  ),
  secret: true,
};

const userOfPeer = setting(
  "The user of this peer; null: the unnamed user.",
  orNone(text, "the unnamed user"),
);
const users = table(
  "The users of peers, by peer.",
  anyName("<peer>", "the id of a peer on the channel"),
  userOfPeer,
);

const channel = group("A channel.", {
  type,
  secret,
  url: optional(
    "For a webhook: the URL that messages are sent to, a variable if it is secret; null: replies stay in the session.",
    textLike("^https?://[^\\s/]\\S*$", "an address that begins with http:// or https://"),
    "no messages to it",
  ),
  user: optional(
    "The user of all its messages; null: each peer has the user named in users, or is a separate user.",
    text,
    "each peer's own",
  ),
  users,
  historyLimit: limit(
    "Maximum number of user turns of its groups and channels that are sent to a model; null: no limit.",
    "no limit",
  ),
  dmHistoryLimit: limit(
    "Maximum number of user turns of its direct sessions that are sent to a model; null: no limit.",
    "no limit",
  ),
  dms,
});

export const channels = table(
  "Connections to people and external programs, by the name that session keys use for the channel.",
  anyName("<channel>", "the name of a channel"),
  channel,
);
