import { choice, flag, orNone, textLike } from "../settings/kinds.ts";
import type { Group, List, Setting } from "../settings/setting.ts";

/** Who may see whom. An agent may say otherwise for itself. */

export type VisibilityWord = "self" | "tree" | "agent" | "all";

const words = choice<VisibilityWord>("self", "tree", "agent", "all");
const meaning = "itself (self), all that it spawned (tree), all of its agent (agent), or any (all)";

const seen = (whose: string): Setting<VisibilityWord> => ({
  node: "setting",
  about: `${whose}: ${meaning}.`,
  kind: words,
  fallback: () => "tree",
});

const visibility = {
  node: "group",
  about:
    "What a session may see of its user's other sessions: one word for every action, or a word for each.",
  fields: {
    list: seen("Which sessions one may list; a word as visibility stands for all four"),
    history: seen("Whose history it may read"),
    send: seen("To which it may send"),
    status: seen("Whose status it may ask for"),
  },
  forAll: words,
} satisfies Group;

const seenUnlessSaid = (whose: string, elsewhere: string): Setting<VisibilityWord | null> => ({
  node: "setting",
  about: `${whose}: ${meaning}; null: as ${elsewhere} says.`,
  kind: orNone(words, `what ${elsewhere} says`),
  fallback: () => null,
});

/** The same for an agent. */
export const agentVisibility = {
  node: "group",
  about: "What sessions of the agent may see: one word for every action, or a word for each.",
  fields: {
    list: seenUnlessSaid(
      "Which sessions its own may list; a word as visibility stands for all four",
      "defaults",
    ),
    history: seenUnlessSaid("Whose history they may read", "defaults"),
    send: seenUnlessSaid("To which they may send", "defaults"),
    status: seenUnlessSaid("Whose status they may ask for", "defaults"),
  },
  forAll: words,
} satisfies Group;

const elsewhere = "tools.sessions.visibility";

/** For all agents that say nothing. */
export const generalVisibility = {
  node: "group",
  about: "What sessions of agents may see: one word for every action, or a word for each.",
  fields: {
    list: seenUnlessSaid(
      "Which sessions those of agents may list; a word as visibility stands for all four",
      elsewhere,
    ),
    history: seenUnlessSaid("Whose history they may read", elsewhere),
    send: seenUnlessSaid("To which they may send", elsewhere),
    status: seenUnlessSaid("Whose status they may ask for", elsewhere),
  },
  forAll: words,
} satisfies Group;

const enabled: Setting<boolean> = {
  node: "setting",
  about: "Whether sessions that may see all reach those of other agents.",
  kind: flag,
  fallback: () => false,
};

const pattern = "[A-Za-z0-9*][A-Za-z0-9_*-]{0,63}";

const allow: List<string> = {
  node: "list",
  about:
    'Which agents reach which: "a -> b", * for any characters; ids without an arrow reach each other; none: every pair.',
  of: textLike(
    `^\\s*${pattern}(?:\\s*->\\s*${pattern})?\\s*$`,
    'a pair such as "main -> research", or an agent id; * stands for any characters',
  ),
};

const showPaths: Setting<boolean> = {
  node: "setting",
  about:
    "Whether sessions_list tells models the file of each session (transcriptPath). Sandboxed sessions never see it.",
  kind: flag,
  fallback: () => false,
};

export const tools = {
  node: "group",
  about: "What the tools for sessions may reach.",
  fields: {
    sessions: { node: "group", about: "Sessions of the same user.", fields: { visibility, showPaths } },
    agentToAgent: { node: "group", about: "Sessions of other agents.", fields: { enabled, allow } },
  },
} satisfies Group;
