import { choice, flag, orNone, textLike } from "../settings/kinds.ts";
import type { Setting } from "../settings/setting.ts";
import { group, list, setting } from "../settings/setting.ts";

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

/** Visibility that falls back to another setting. */
const inheritedVisibility = (about: string, whose: string, elsewhere: string) => {
  const inherited = (what: string): Setting<VisibilityWord | null> => {
    const text = `${what}: ${meaning}; null: the value of ${elsewhere}.`;
    return setting(text, orNone(words, `what ${elsewhere} says`), null);
  };
  return group(
    about,
    {
      list: inherited(
        `Which sessions ${whose} may list; a single value for visibility applies to all four actions`,
      ),
      history: inherited("Which sessions' history they may read"),
      send: inherited("Which sessions they may send to"),
      status: inherited("Which sessions' status they may read"),
    },
    { forAll: words },
  );
};

export const agentVisibility = inheritedVisibility(
  "Which sessions those of the agent may see: one value for all actions, or one for each.",
  "its own",
  "defaults",
);

/** Applies to all agents that do not set their own. */
export const generalVisibility = inheritedVisibility(
  "Which sessions those of agents may see: one value for all actions, or one for each.",
  "those of agents",
  "tools.sessions.visibility",
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
