/** What may be typed behind a slash, in the order that /help shows it. */
export const slashCommands = {
  help: { usage: "/help", about: "what can be typed here" },
  branch: {
    usage: "/branch [entry]",
    about: "go on from an entry; without one, from before what you said last",
  },
  fork: { usage: "/fork [entry]", about: "go on in a new session, with the path to an entry" },
  tree: { usage: "/tree", about: "every branch of the session" },
  compact: { usage: "/compact [what to mind]", about: "have the older part summarised" },
  status: { usage: "/status", about: "the session, its model, and what is running" },
  new: { usage: "/new", about: "begin anew under the same key; the old session stays" },
  model: { usage: "/model [provider/model]", about: "the model of this session; - takes it away again" },
  quit: { usage: "/quit", about: "leave; Ctrl-D does too" },
} as const;

export type SlashName = keyof typeof slashCommands;

export type Slash =
  | { readonly name: SlashName; readonly rest: string }
  | { readonly name: null; readonly typed: string };

/** A line that begins with a slash, read; `null`: it is something to say. Two slashes say one. */
export function readSlash(line: string): Slash | null {
  if (!line.startsWith("/") || line.startsWith("//")) return null;
  const [, word = "", rest = ""] = /^\/(\S*)\s*(.*)$/s.exec(line) ?? [];
  const name = word.toLowerCase();
  if (Object.hasOwn(slashCommands, name)) return { name: name as SlashName, rest: rest.trim() };
  return { name: null, typed: word };
}

export function slashHelp(): string {
  const rows = Object.values(slashCommands);
  const width = Math.max(...rows.map(({ usage }) => usage.length));
  return rows.map(({ usage, about }) => `  ${usage.padEnd(width)}  ${about}\n`).join("");
}
