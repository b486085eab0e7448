import { choice, optional, orNone, text, textLike, wholeNumber } from "../settings/kinds.ts";
import type { Setting, Table } from "../settings/setting.ts";
import { group, setting } from "../settings/setting.ts";
import { anyName } from "./tables.ts";

const limit = (about: string, meaning: string) => optional(about, wholeNumber(1), meaning);

const dm = group("Direct sessions with one user.", {
  historyLimit: limit(
    "So many user turns of this user's direct sessions are sent to a model; null: as dmHistoryLimit says.",
    "what dmHistoryLimit says",
  ),
});

const dms: Table<typeof dm> = {
  node: "table",
  about: "Direct sessions, by user.",
  keyName: "<user>",
  keyExpected: "the id of a user on the channel",
  ...anyName,
  of: dm,
};

type ChannelType = "webhook" | "cli" | "console";

const type = optional(
  "What it is: a program that speaks HTTP (webhook), a terminal (cli), the console; null: a name only.",
  choice<ChannelType>("webhook", "cli", "console"),
  "a name only",
);
const secret: Setting<string | null> = {
  ...optional("Of a webhook: what messages are signed with, both ways, best as a variable.", text, "none"),
  secret: true,
};

const userOfPeer = setting(
  "The user that this peer is; null: the unnamed user.",
  orNone(text, "the unnamed user"),
);
const users: Table<typeof userOfPeer> = {
  node: "table",
  about: "The users that peers are, by peer.",
  keyName: "<peer>",
  keyExpected: "the id of a peer on the channel",
  ...anyName,
  of: userOfPeer,
};

const channel = group("A channel.", {
  type,
  secret,
  url: optional(
    "Of a webhook: where messages to it go, as a variable if that is a secret; null: its replies stay in the session.",
    textLike("^https?://[^\\s/]\\S*$", "an address that begins with http:// or https://"),
    "no messages to it",
  ),
  user: optional(
    "The user that all its messages belong to; null: as users says, and other peers are users of their own.",
    text,
    "each peer's own",
  ),
  users,
  historyLimit: limit(
    "So many user turns of its groups and channels are sent to a model; null: no limit.",
    "no limit",
  ),
  dmHistoryLimit: limit(
    "So many user turns of its direct sessions are sent to a model; null: no limit.",
    "no limit",
  ),
  dms,
});

export const channels: Table<typeof channel> = {
  node: "table",
  about: "Where messages come from and go to, by the channel's name in session keys.",
  keyName: "<channel>",
  keyExpected: "the name of a channel",
  ...anyName,
  of: channel,
};
