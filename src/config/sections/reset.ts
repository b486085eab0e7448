import type { SessionKind } from "../../core/keys.ts";
import { alternatives, choice, wholeNumber } from "../settings/kinds.ts";
import type { Group, Setting, Table, Unused } from "../settings/setting.ts";
import { anyName } from "./names.ts";

type Mode = "none" | "daily" | "idle";

const modes = choice<Mode>("none", "daily", "idle");
const aboutMode =
  "When a key moves on to a new session: never (none), once a day (daily), or after a silence (idle). Only what people say counts.";

const mode: Setting<Mode> = { node: "setting", about: aboutMode, kind: modes, fallback: () => "none" };
const requiredMode: Setting<Mode> = { node: "setting", about: aboutMode, kind: modes };

const atHour: Setting<number> = {
  node: "setting",
  about: "With daily: the hour, in local time, at which a new day begins.",
  kind: wholeNumber(0, 23),
  fallback: () => 4,
};

const minutes: Setting<number> = {
  node: "setting",
  about: "With idle: how many minutes of silence it takes.",
  kind: wholeNumber(1, 5_256_000),
  fallback: () => 60,
};

/** Somebody who writes `minutes` means `idle`; never resetting without a word would be a trap. */
function unused(values: Readonly<Record<string, unknown>>): readonly Unused[] {
  return Object.entries({ atHour: "daily", minutes: "idle" })
    .filter(([, wanted]) => values.mode !== wanted)
    .map(([field, wanted]) => {
      return { field, because: "mode", expected: `"mode: ${wanted}" beside it (mode is ${values.mode})` };
    });
}

const rule = {
  node: "group",
  about: "A rule of its own.",
  fields: { mode: requiredMode, atHour, minutes },
  unused,
} satisfies Group;

const kinds: readonly SessionKind[] = ["main", "group", "cron", "hook", "node", "other"];

const byKind: Table<typeof rule> = {
  node: "table",
  about: "Rules for sessions of a kind, instead of the general one.",
  keyName: "<kind>",
  keyExpected: alternatives(kinds),
  keySchema: { enum: kinds },
  readKey: (text) => kinds.find((kind) => kind === text) ?? null,
  of: rule,
  fallbackKeys: [],
};

const byChannel: Table<typeof rule> = {
  node: "table",
  about: "Rules for sessions of a channel, instead of all others.",
  keyName: "<channel>",
  keyExpected: "the name of a channel",
  ...anyName,
  of: rule,
};

export const reset = {
  node: "group",
  about: "When a key moves on to a new session; the old one stays readable.",
  fields: { mode, atHour, minutes, byKind, byChannel },
  unused,
} satisfies Group;
