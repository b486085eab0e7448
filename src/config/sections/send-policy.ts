import { choice, orNone, text } from "../settings/kinds.ts";
import type { Group, Rows, Setting, ValueKind } from "../settings/setting.ts";

const actions = choice("allow", "deny");

/** A condition that nobody has to give. */
function condition<T>(about: string, kind: ValueKind<T>): Setting<T | null> {
  return { node: "setting", about, kind: orNone(kind, "any"), fallback: () => null };
}

const match = {
  node: "group",
  about: "What the rule is about; nothing: everything.",
  fields: {
    channel: condition("The channel that a message goes to; null: any.", text),
    chatType: condition(
      "The sort of conversation: with one person, a group, or a channel of many; null: any.",
      choice("direct", "group", "channel"),
    ),
    keyPrefix: condition("How the session's key begins, with or without agent:<agentId>:; null: any.", text),
  },
} satisfies Group;

const rule = {
  node: "group",
  about: "A rule.",
  fields: {
    action: { node: "setting", about: "What it says: allow or deny.", kind: actions } as Setting<
      "allow" | "deny"
    >,
    match,
  },
} satisfies Group;

const rules: Rows<typeof rule> = {
  node: "rows",
  about: "Rules, in order; the first that matches decides.",
  of: rule,
};

const fallbackAction: Setting<"allow" | "deny"> = {
  node: "setting",
  about: "Whether sessions may send to channels where no rule matches.",
  kind: actions,
  fallback: () => "allow",
};

export const sendPolicy = {
  node: "group",
  about: "What sessions may send to channels.",
  fields: { default: fallbackAction, rules },
} satisfies Group;
