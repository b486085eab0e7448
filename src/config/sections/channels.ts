import { choice, orNone, text, textLike, wholeNumber } from "../settings/kinds.ts";
import type { Group, Setting, Table, ValueKind } from "../settings/setting.ts";
import { anyName } from "./names.ts";

const limit = (about: string, meaning: string): Setting<number | null> => ({
  node: "setting",
  about,
  kind: orNone(wholeNumber(1), meaning),
  fallback: () => null,
});

const dm = {
  node: "group",
  about: "Direct sessions with one user.",
  fields: {
    historyLimit: limit(
      "So many user turns of this user's direct sessions are sent to a model; null: as dmHistoryLimit says.",
      "what dmHistoryLimit says",
    ),
  },
} satisfies Group;

const dms: Table<typeof dm> = {
  node: "table",
  about: "Direct sessions, by user.",
  keyName: "<user>",
  keyExpected: "the id of a user on the channel",
  ...anyName,
  of: dm,
};

/** A setting that says nothing unless it is given. */
function optional<T>(about: string, kind: ValueKind<T>, meaning: string): Setting<T | null> {
  return { node: "setting", about, kind: orNone(kind, meaning), fallback: () => null };
}

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
const url = optional(
  "Of a webhook: where messages to it go, as a variable if that is a secret; null: its replies stay in the session.",
  textLike("^https?://[^\\s/]\\S*$", "an address that begins with http:// or https://"),
  "no messages to it",
);
const user = optional(
  "The user that all its messages belong to; null: as users says, and other peers are users of their own.",
  text,
  "each peer's own",
);

const userOfPeer: Setting<string | null> = {
  node: "setting",
  about: "The user that this peer is; null: the unnamed user.",
  kind: orNone(text, "the unnamed user"),
};
const users: Table<typeof userOfPeer> = {
  node: "table",
  about: "The users that peers are, by peer.",
  keyName: "<peer>",
  keyExpected: "the id of a peer on the channel",
  ...anyName,
  of: userOfPeer,
};

const channel = {
  node: "group",
  about: "A channel.",
  fields: {
    type,
    secret,
    url,
    user,
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
  },
} satisfies Group;

export const channels: Table<typeof channel> = {
  node: "table",
  about: "Where messages come from and go to, by the channel's name in session keys.",
  keyName: "<channel>",
  keyExpected: "the name of a channel",
  ...anyName,
  of: channel,
};
