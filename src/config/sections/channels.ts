import { orNone, wholeNumber } from "../settings/kinds.ts";
import type { Group, Setting, Table } from "../settings/setting.ts";
import { anyName } from "./names.ts";

const limit = (about: string, meaning: string): Setting<number | null> => ({
  node: "setting",
  about,
  kind: orNone(wholeNumber(1), meaning),
  fallback: () => null,
});

const user = {
  node: "group",
  about: "Direct sessions with one user.",
  fields: {
    historyLimit: limit(
      "So many user turns of this user's direct sessions are sent to a model; null: as dmHistoryLimit says.",
      "what dmHistoryLimit says",
    ),
  },
} satisfies Group;

const dms: Table<typeof user> = {
  node: "table",
  about: "Direct sessions, by user.",
  keyName: "<user>",
  keyExpected: "the id of a user on the channel",
  ...anyName,
  of: user,
};

const channel = {
  node: "group",
  about: "A channel.",
  fields: {
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
