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
  "One person's IDs on channels, each as channel:peer; they share this name.",
  textLike("^[^:]+:.+$", "a channel and a peer, as channel:peer"),
);

export const identityLinks = table(
  "People who are known on several channels, by a name for each.",
  keysLike("<name>", "a name without colons", "^[^:\\s][^:]*$", { canBeProto: true }),
  peers,
);

const actions = choice("allow", "deny");

const condition = <T>(about: string, kind: ValueKind<T>) => optional(about, kind, "any");

const match = group("What the rule matches; empty: everything.", {
  channel: condition("The channel that a message goes to; null: any.", text),
  chatType: condition(
    "The type of conversation: with one person, a group, or a channel; null: any.",
    choice("direct", "group", "channel"),
  ),
  keyPrefix: condition(
    "The beginning of the session's key, with or without agent:<agentId>:; null: any.",
    text,
  ),
});

const sendRule = group("A rule.", {
  action: setting("Whether it allows or denies.", actions),
  match,
});

const fallbackAction = setting("Whether sessions may send to channels if no rule matches.", actions, "allow");

export const sendPolicy = group("What sessions may send to channels.", {
  default: fallbackAction,
  rules: rows("Rules, in order; the first match decides.", sendRule),
});

type Mode = "none" | "daily" | "idle";

const modes = choice<Mode>("none", "daily", "idle");
const aboutMode =
  "When a key moves to a new session: never (none), once a day (daily), or after a time without input (idle). Only input from people counts.";

const requiredMode = setting(aboutMode, modes);

const atHour = setting("With daily: the hour of the reset, in local time.", wholeNumber(0, 23), 4);

const minutes = setting("With idle: minutes without input.", wholeNumber(1, 5_256_000), 60);

/** Without this check, `minutes` without `mode: idle` would silently have no effect. */
function unused(values: Readonly<Record<string, unknown>>): readonly Unused[] {
  return Object.entries({ atHour: "daily", minutes: "idle" })
    .filter(([, wanted]) => values.mode !== wanted)
    .map(([field, wanted]) => {
      return { field, because: "mode", expected: `"mode: ${wanted}" next to it (mode is ${values.mode})` };
    });
}

const resetRule = group("A separate rule.", { mode: requiredMode, atHour, minutes }, { unused });

const kinds: readonly SessionKind[] = ["main", "group", "cron", "hook", "node", "other"];

const kindKeys = {
  keyName: "<kind>",
  keyExpected: alternatives(kinds),
  keySchema: { enum: kinds },
  readKey: (key: string) => kinds.find((kind) => kind === key) ?? null,
  fallbackKeys: [],
};
const byKind = table("Rules for sessions of a kind, instead of the general one.", kindKeys, resetRule);

const byChannel = table(
  "Rules for sessions of a channel, instead of all others.",
  anyName("<channel>", "the name of a channel"),
  resetRule,
);

export const reset = group(
  "When a key moves to a new session; the old one stays readable.",
  { mode: setting(aboutMode, modes, "none"), atHour, minutes, byKind, byChannel },
  { unused },
);

const days = 86_400_000;

export const maintenance = group("What happens to old sessions.", {
  mode: setting(
    "Only report what would be done (warn), or do it (enforce).",
    choice("warn", "enforce"),
    "warn",
  ),
  pruneAfter: setting(
    "A session that was inactive for this long moves to the trash; null: never.",
    orNone(duration, "never"),
    30 * days,
  ),
  maxSessions: setting(
    "If a user has more sessions than this, the oldest are archived; null: no limit.",
    orNone(wholeNumber(1), "no limit"),
    5000,
  ),
  maxDiskBytes: setting(
    "Above this size space is freed: first the trash, then archived sessions; null: no limit.",
    orNone(bytes, "no limit"),
    null,
  ),
  highWater: setting("The fraction of maxDiskBytes down to which space is freed.", share, 0.8),
  trashAfter: setting("How long the trash is kept; null: forever.", orNone(duration, "for good"), 30 * days),
});

type DmScope = "per-channel-peer" | "per-peer" | "per-account-channel-peer" | "main";

const agentToAgent = group("How sessions talk to one another.", {
  maxPingPongTurns: setting(
    "Maximum number of turns of the exchange that follows a message between two sessions.",
    wholeNumber(0, 5),
    5,
  ),
});

export const session = group("How sessions begin and end.", {
  scope: setting(
    "Whether each sender has their own sessions (per-sender), or all share one (global).",
    choice("per-sender", "global"),
    "per-sender",
  ),
  dmScope: setting(
    "Which direct messages share a session: those of a peer on a channel, of a peer, or of a peer on an account of a channel; main: those of the user go to the main session, all others as per-channel-peer.",
    choice<DmScope>("per-channel-peer", "per-peer", "per-account-channel-peer", "main"),
    "per-channel-peer",
  ),
  identityLinks,
  sendPolicy,
  agentToAgent,
  reset,
  maintenance,
});
