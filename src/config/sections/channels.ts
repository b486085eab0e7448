import {
  agentIdKind,
  choice,
  choiceWithOff,
  optional,
  orNone,
  text,
  textLike,
  wholeNumber,
} from "../settings/kinds.ts";
import type { Conflict, Setting } from "../settings/setting.ts";
import { group, list, setting, table } from "../settings/setting.ts";
import type { ChatAdapterName } from "./chat-adapters.ts";
import { chatAdapterNames, parseValue, platformOf } from "./chat-adapters.ts";
import { anyName, keysLike } from "./tables.ts";

const limit = (about: string, meaning: string) => optional(about, wholeNumber(1), meaning);

const dm = group("Settings for direct sessions with one user.", {
  historyLimit: limit(
    "Maximum number of user turns sent to a model from this user's direct sessions. Defaults to `dmHistoryLimit`.",
    "the value of dmHistoryLimit",
  ),
});

const dms = table("Direct sessions, by user.", anyName("<user>", "a user ID on the channel"), dm);

type ChannelType = "webhook" | "chat-sdk" | "cli" | "console";

const type = optional(
  "The channel type: a program that uses HTTP (`webhook`), a chat platform (`chat-sdk`), a terminal (`cli`), or the `console`. `null` means that the channel is only a name.",
  choice<ChannelType>("webhook", "chat-sdk", "cli", "console"),
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

const adapterSetting: Setting<string> = {
  node: "setting",
  about: "A setting of the adapter, preferably a variable. Its value is never shown.",
  kind: text,
  secret: true,
};
const settings = {
  ...table(
    "For `chat-sdk`: the adapter's settings, by name.",
    keysLike("<setting>", "the name of a setting", "^[A-Za-z]+$"),
    adapterSetting,
  ),
  keepsCase: true as const,
};

type ChannelValues = {
  readonly type: ChannelType | null;
  readonly adapter: ChatAdapterName | null;
  readonly settings: Readonly<Record<string, string>>;
};

/** Reports a chat channel without an adapter, and settings that are missing, unknown or invalid for its adapter. */
function conflicts({ type, adapter, settings }: ChannelValues): readonly Conflict[] {
  if (type !== "chat-sdk") return [];
  if (adapter === null) {
    const expected = `an adapter (${chatAdapterNames.join(", ")})`;
    return [{ at: ["type"], found: "chat-sdk without an adapter", expected, words: [] }];
  }
  const { title, settings: known, oneOf = [] } = platformOf(adapter);
  const names = Object.keys(known);
  const lacks = (expected: string): Conflict => ({ at: ["adapter"], found: adapter, expected, words: [] });
  const missing = names.flatMap((name) => {
    const required = known[name]?.required;
    return required === undefined || name in settings ? [] : [lacks(`settings.${name}: ${required}`)];
  });
  const hasOne = oneOf.length === 0 || oneOf.some((name) => name in settings);
  const unknown = Object.keys(settings)
    .filter((name) => !names.includes(name))
    .map((name) => ({
      at: ["settings", name],
      found: name,
      expected: `a setting of the ${title} adapter (${names.join(", ")})`,
      words: names,
    }));
  const unreadable = names.flatMap((name) => {
    const { kind = "text" } = known[name] ?? {};
    const value = settings[name];
    if (value === undefined || parseValue(kind, value) !== null) return [];
    const expected = kind === "json" ? "a JSON object, written as text" : "a whole number";
    return [{ at: ["settings", name], found: "another value", expected, words: [] }];
  });
  return [
    ...missing,
    ...(hasOne ? [] : [lacks(oneOf.map((name) => `settings.${name}`).join(" or "))]),
    ...unknown,
    ...unreadable,
  ];
}

const channelFields = {
  type,
  adapter: optional(
    "For `chat-sdk`: the adapter of the chat platform.",
    choice<ChatAdapterName>(...chatAdapterNames),
    "no adapter",
  ),
  settings,
  groups: setting(
    "For `chat-sdk`: which messages in a group are accepted: those that mention the bot and those in a thread in which it was mentioned (`mentions`), or `all`.",
    choice("mentions", "all"),
    "mentions",
  ),
  streaming: setting(
    "For `chat-sdk`: whether an answer is posted and then edited while it is being written (`edits`), or posted when it is complete (`off`).",
    choiceWithOff("edits"),
    "edits",
  ),
  editIntervalMs: optional(
    "For `chat-sdk`: the minimum time between two edits of an answer, in milliseconds. `null` means the adapter's default.",
    wholeNumber(100, 60_000),
    "the adapter's default",
  ),
  approvers: list(
    "For `chat-sdk`: the peers who may answer approval requests. If empty, only the person whose message started the run may answer.",
    text,
  ),
  agent: setting(
    "The agent for messages that do not name an agent. `null` means the default agent.",
    orNone(agentIdKind, "the default agent"),
    null,
  ),
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
};

const channel = group("A channel.", channelFields, { conflicts });

export const channels = table(
  "Connections to people and external programs, by the channel name used in session keys.",
  anyName("<channel>", "a channel name"),
  channel,
);
