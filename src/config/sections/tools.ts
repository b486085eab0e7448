import { choice, flag, orNone, textLike } from "../settings/kinds.ts";
import type { Setting } from "../settings/setting.ts";
import { group, list, setting } from "../settings/setting.ts";

/** Who may see whom. An agent may say otherwise for itself. */

export type VisibilityWord = "self" | "tree" | "agent" | "all";

const words = choice<VisibilityWord>("self", "tree", "agent", "all");
const meaning = "itself (self), everything that it spawned (tree), all of its agent (agent), or any (all)";

const seen = (whose: string): Setting<VisibilityWord> => setting(`${whose}: ${meaning}.`, words, "tree");

const visibility = group(
  "Which of its user's other sessions a session may see: one value for all actions, or one for each.",
  {
    list: seen("Which sessions it may list; a single value for visibility applies to all four actions"),
    history: seen("Which sessions' history it may read"),
    send: seen("Which sessions it may send to"),
    status: seen("Which sessions' status it may read"),
  },
  { forAll: words },
);

const seenUnlessSaid = (whose: string, elsewhere: string): Setting<VisibilityWord | null> =>
  setting(
    `${whose}: ${meaning}; null: the value of ${elsewhere}.`,
    orNone(words, `what ${elsewhere} says`),
    null,
  );

/** The same for an agent. */
export const agentVisibility = group(
  "Which sessions those of the agent may see: one value for all actions, or one for each.",
  {
    list: seenUnlessSaid(
      "Which sessions its own may list; a single value for visibility applies to all four actions",
      "defaults",
    ),
    history: seenUnlessSaid("Which sessions' history they may read", "defaults"),
    send: seenUnlessSaid("Which sessions they may send to", "defaults"),
    status: seenUnlessSaid("Which sessions' status they may read", "defaults"),
  },
  { forAll: words },
);

const elsewhere = "tools.sessions.visibility";

/** For all agents that say nothing. */
export const generalVisibility = group(
  "Which sessions those of agents may see: one value for all actions, or one for each.",
  {
    list: seenUnlessSaid(
      "Which sessions those of agents may list; a single value for visibility applies to all four actions",
      elsewhere,
    ),
    history: seenUnlessSaid("Which sessions' history they may read", elsewhere),
    send: seenUnlessSaid("Which sessions they may send to", elsewhere),
    status: seenUnlessSaid("Which sessions' status they may read", elsewhere),
  },
  { forAll: words },
);

const pattern = "[A-Za-z0-9*][A-Za-z0-9_*-]{0,63}";

export const tools = group("What the session tools may reach.", {
  sessions: group("Sessions of the same user.", {
    visibility,
    showPaths: setting(
      "Whether sessions_list shows models the file of each session (transcriptPath). Sandboxed sessions never see it.",
      flag,
      false,
    ),
  }),
  agentToAgent: group("Sessions of other agents.", {
    enabled: setting("Whether sessions with visibility all reach those of other agents.", flag, false),
    allow: list(
      'Which agents reach which: "a -> b", * for any characters; IDs without an arrow reach each other; empty: every pair.',
      textLike(
        `^\\s*${pattern}(?:\\s*->\\s*${pattern})?\\s*$`,
        'a pair such as "main -> research", or an agent id; * stands for any characters',
      ),
    ),
  }),
});
