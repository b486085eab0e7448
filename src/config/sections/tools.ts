import { choice, flag, orNone, textLike } from "../settings/kinds.ts";
import type { Setting } from "../settings/setting.ts";
import { group, list, setting } from "../settings/setting.ts";

export type VisibilityWord = "self" | "tree" | "agent" | "all";

const words = choice<VisibilityWord>("self", "tree", "agent", "all");
const meaning =
  "only itself (`self`), also the sessions that it has spawned (`tree`), all sessions of its agent (`agent`), or all of its user's sessions (`all`)";
const forAllActions = "A single value for `visibility` applies to all four actions.";

const seen = (what: string): Setting<VisibilityWord> => setting(`${what}: ${meaning}.`, words, "tree");

const visibility = group(
  `Which of its user's sessions a session can access. ${forAllActions}`,
  {
    list: seen("The sessions that a session can list"),
    history: seen("The sessions whose history a session can read"),
    send: seen("The sessions that a session can send to"),
    status: seen("The sessions whose status a session can read"),
  },
  { forAll: words },
);

/** Visibility that falls back to another setting. */
const inheritedVisibility = (about: string, whose: string, elsewhere: string) => {
  const inherited = (what: string): Setting<VisibilityWord | null> => {
    const text = `${what}: ${meaning}. Defaults to \`${elsewhere}\`.`;
    return setting(text, orNone(words, `the value of ${elsewhere}`), null);
  };
  return group(
    `${about} ${forAllActions}`,
    {
      list: inherited(`The sessions that ${whose} can list`),
      history: inherited(`The sessions whose history ${whose} can read`),
      send: inherited(`The sessions that ${whose} can send to`),
      status: inherited(`The sessions whose status ${whose} can read`),
    },
    { forAll: words },
  );
};

export const agentVisibility = inheritedVisibility(
  "Which sessions the agent's sessions can access.",
  "a session of this agent",
  "defaults.visibility",
);

/** Applies to agents that do not set their own visibility. */
export const generalVisibility = inheritedVisibility(
  "Which sessions an agent's sessions can access.",
  "a session",
  "tools.sessions.visibility",
);

const pattern = "[A-Za-z0-9*][A-Za-z0-9_*-]{0,63}";

export const tools = group("What the session tools can access.", {
  sessions: group("Access to sessions that belong to the same user.", {
    visibility,
    showPaths: setting(
      "Whether `sessions_list` shows the path of each session's file (`transcriptPath`) to models. Sandboxed sessions never see it.",
      flag,
      false,
    ),
  }),
  agentToAgent: group("Access to other agents' sessions.", {
    enabled: setting(
      "Whether sessions with visibility `all` can access other agents' sessions.",
      flag,
      false,
    ),
    allow: list(
      "Which agents can access which, as `a -> b`; `*` matches any characters. Agents listed without an arrow can access each other. If empty, every pair is allowed.",
      textLike(
        `^\\s*${pattern}(?:\\s*->\\s*${pattern})?\\s*$`,
        'a pair such as "main -> research", or an agent ID; * matches any characters',
      ),
    ),
  }),
});
