import { choice, flag, text } from "../settings/kinds.ts";
import type { Group, Rows, Setting } from "../settings/setting.ts";

const onWrite: Setting<boolean> = {
  node: "setting",
  about: "Whether secrets are masked in what is written to sessions; what was masked there is gone for good.",
  kind: flag,
  fallback: () => false,
};

const name: Setting<string> = { node: "setting", about: "A name for the rule.", kind: text };

const pattern: Setting<string> = {
  node: "setting",
  about: "A regular expression; what it matches is masked. It sees one line at a time.",
  kind: text,
};

const keep: Setting<"ends" | "nothing"> = {
  node: "setting",
  about: "What stays to be seen of a match: its first six and last four characters (ends), or nothing.",
  kind: choice("ends", "nothing"),
  fallback: () => "ends",
};

const rule = { node: "group", about: "A rule.", fields: { name, pattern, keep } } satisfies Group;

const rules: Rows<typeof rule> = {
  node: "rows",
  about: "Rules of your own; they are added to the built-in ones.",
  of: rule,
};

export const redaction = {
  node: "group",
  about: "What is taken out of texts as a secret.",
  fields: { onWrite, rules },
} satisfies Group;
