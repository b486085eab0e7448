import type { SessionKind } from "../../core/keys.ts";
import {
  alternatives,
  bytes,
  choice,
  duration,
  optional,
  orNone,
  share,
  text,
  textLike,
  wholeNumber,
} from "../settings/kinds.ts";
import type { Unused, ValueKind } from "../settings/setting.ts";
import { group, list, rows, setting, table } from "../settings/setting.ts";
import { anyName, keysLike } from "./tables.ts";

const peers = list(
  "One person's IDs on different channels, each as `channel:peer`. They all resolve to this name.",
  textLike("^[^:]+:.+$", "a channel and a peer in the format channel:peer"),
);

export const identityLinks = table(
  "People who use several channels. You choose the name of each person.",
  keysLike("<name>", "a name without colons", "^[^:\\s][^:]*$", { canBeProto: true }),
  peers,
);

const actions = choice("allow", "deny");

const condition = <T>(about: string, kind: ValueKind<T>) => optional(about, kind, "any");

const match = group("What the rule matches. If empty, it matches everything.", {
  channel: condition("The channel that the message is sent to. `null` matches any channel.", text),
  chatType: condition(
    "The type of conversation: with one person, in a group, or in a channel. `null` matches any type.",
    choice("direct", "group", "channel"),
  ),
  keyPrefix: condition(
    "A prefix of the session's key, with or without `agent:<agentId>:`. `null` matches any key.",
    text,
  ),
});

const sendRule = group("A rule.", {
  action: setting("Whether a matching message is allowed or denied.", actions),
  match,
});

const fallbackAction = setting("Whether sessions may send to channels if no rule matches.", actions, "allow");

export const sendPolicy = group("Which messages sessions may send to channels.", {
  default: fallbackAction,
  rules: rows("Rules, checked in order. The first matching rule applies.", sendRule),
});

type Mode = "none" | "daily" | "idle";

const modes = choice<Mode>("none", "daily", "idle");
const aboutMode =
  "When a key moves to a new session: never (`none`), once a day (`daily`), or after a period without input (`idle`). Only input from people counts.";

const requiredMode = setting(aboutMode, modes);

const atHour = setting("For `daily`: the hour of the reset, in local time.", wholeNumber(0, 23), 4);

const minutes = setting("For `idle`: the number of minutes without input.", wholeNumber(1, 5_256_000), 60);

/** Rejects settings that would silently have no effect, such as `minutes` without `mode: idle`. */
function unused(values: Readonly<Record<string, unknown>>): readonly Unused[] {
  return Object.entries({ atHour: "daily", minutes: "idle" })
    .filter(([, wanted]) => values.mode !== wanted)
    .map(([field, wanted]) => {
      return { field, because: "mode", expected: `"mode: ${wanted}" with it (mode is ${values.mode})` };
    });
}

const resetRule = group(
  "A rule that replaces the general one.",
  { mode: requiredMode, atHour, minutes },
  { unused },
);

const kinds: readonly SessionKind[] = ["main", "group", "cron", "hook", "node", "other"];

const kindKeys = {
  keyName: "<kind>",
  keyExpected: alternatives(kinds),
  keySchema: { enum: kinds },
  readKey: (key: string) => kinds.find((kind) => kind === key) ?? null,
  fallbackKeys: [],
};
const byKind = table(
  "Rules, each for one kind of session. They replace the general rule.",
  kindKeys,
  resetRule,
);

const byChannel = table(
  "Rules, each for sessions on one channel. They replace all other rules.",
  anyName("<channel>", "a channel name"),
  resetRule,
);

export const reset = group(
  "When a key moves to a new session. The old session stays readable.",
  { mode: setting(aboutMode, modes, "none"), atHour, minutes, byKind, byChannel },
  { unused },
);

const days = 86_400_000;

export const maintenance = group("What happens to old sessions.", {
  mode: setting(
    "Whether to only report what maintenance would do (`warn`) or to do it (`enforce`).",
    choice("warn", "enforce"),
    "warn",
  ),
  pruneAfter: setting(
    "Sessions that have been inactive for this long are moved to the trash. `null` means never.",
    orNone(duration, "never"),
    30 * days,
  ),
  maxSessions: setting(
    "If a user has more sessions than this, the oldest ones are archived. `null` means no limit.",
    orNone(wholeNumber(1), "no limit"),
    5000,
  ),
  maxDiskBytes: setting(
    "The size above which disk space is freed: first from the trash, then from archived sessions. `null` means no limit.",
    orNone(bytes, "no limit"),
    null,
  ),
  highWater: setting("Space is freed until usage drops to this fraction of `maxDiskBytes`.", share, 0.8),
  trashAfter: setting(
    "How long sessions stay in the trash. `null` means forever.",
    orNone(duration, "forever"),
    30 * days,
  ),
});

type DmScope = "per-channel-peer" | "per-peer" | "per-account-channel-peer" | "main";

const agentToAgent = group("How sessions exchange messages.", {
  maxPingPongTurns: setting(
    "Maximum number of turns in the exchange that follows a message between two sessions.",
    wholeNumber(0, 5),
    5,
  ),
});

export const session = group("How sessions begin and end.", {
  scope: setting(
    "Whether each sender has separate sessions (`per-sender`) or all senders share one session (`global`).",
    choice("per-sender", "global"),
    "per-sender",
  ),
  dmScope: setting(
    "Which direct messages share a session: all from one peer on one channel (`per-channel-peer`), from one peer on any channel (`per-peer`), or from one peer on one account of a channel (`per-account-channel-peer`). With `main`, the user's own messages go to the main session, and all other messages are handled as with `per-channel-peer`.",
    choice<DmScope>("per-channel-peer", "per-peer", "per-account-channel-peer", "main"),
    "per-channel-peer",
  ),
  identityLinks,
  sendPolicy,
  agentToAgent,
  reset,
  maintenance,
});
