import { choice, flag, orNone, textLike } from "../settings/kinds.ts";
import type { Setting } from "../settings/setting.ts";
import { group, list, setting } from "../settings/setting.ts";

/** Who may see whom. An agent may say otherwise for itself. */

export type VisibilityWord = "self" | "tree" | "agent" | "all";

const words = choice<VisibilityWord>("self", "tree", "agent", "all");
const meaning = "itself (self), all that it spawned (tree), all of its agent (agent), or any (all)";

const seen = (whose: string): Setting<VisibilityWord> => setting(`${whose}: ${meaning}.`, words, "tree");

const visibility = group(
  "What a session may see of its user's other sessions: one word for every action, or a word for each.",
  {
    list: seen("Which sessions one may list; a word as visibility stands for all four"),
    history: seen("Whose history it may read"),
    send: seen("To which it may send"),
    status: seen("Whose status it may ask for"),
  },
  { forAll: words },
);

const seenUnlessSaid = (whose: string, elsewhere: string): Setting<VisibilityWord | null> =>
  setting(`${whose}: ${meaning}; null: as ${elsewhere} says.`, orNone(words, `what ${elsewhere} says`), null);

/** The same for an agent. */
export const agentVisibility = group(
  "What sessions of the agent may see: one word for every action, or a word for each.",
  {
    list: seenUnlessSaid(
      "Which sessions its own may list; a word as visibility stands for all four",
      "defaults",
    ),
    history: seenUnlessSaid("Whose history they may read", "defaults"),
    send: seenUnlessSaid("To which they may send", "defaults"),
    status: seenUnlessSaid("Whose status they may ask for", "defaults"),
  },
  { forAll: words },
);

const elsewhere = "tools.sessions.visibility";

/** For all agents that say nothing. */
export const generalVisibility = group(
  "What sessions of agents may see: one word for every action, or a word for each.",
  {
    list: seenUnlessSaid(
      "Which sessions those of agents may list; a word as visibility stands for all four",
      elsewhere,
    ),
    history: seenUnlessSaid("Whose history they may read", elsewhere),
    send: seenUnlessSaid("To which they may send", elsewhere),
    status: seenUnlessSaid("Whose status they may ask for", elsewhere),
  },
  { forAll: words },
);

const pattern = "[A-Za-z0-9*][A-Za-z0-9_*-]{0,63}";

export const tools = group("What the tools for sessions may reach.", {
  sessions: group("Sessions of the same user.", {
    visibility,
    showPaths: setting(
      "Whether sessions_list tells models the file of each session (transcriptPath). Sandboxed sessions never see it.",
      flag,
      false,
    ),
  }),
  agentToAgent: group("Sessions of other agents.", {
    enabled: setting("Whether sessions that may see all reach those of other agents.", flag, false),
    allow: list(
      'Which agents reach which: "a -> b", * for any characters; ids without an arrow reach each other; none: every pair.',
      textLike(
        `^\\s*${pattern}(?:\\s*->\\s*${pattern})?\\s*$`,
        'a pair such as "main -> research", or an agent id; * stands for any characters',
      ),
    ),
  }),
});
