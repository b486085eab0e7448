import { SkeinError } from "../../core/errors.ts";
import { spaceOf } from "../../core/space.ts";
import type { Column } from "./table.ts";
import type { Terminal } from "./terminal.ts";

/** Options of every command. */
export interface GlobalOptions {
  readonly dir?: string;
  readonly config?: string;
  readonly user?: string;
  readonly agent?: string;
  readonly json?: boolean;
}

export interface AllUsersOption {
  readonly allUsers?: boolean;
}

/** The method params for `--user` and `--all-users`. */
export function userFilter({ user, allUsers }: GlobalOptions & AllUsersOption): {
  readonly userId?: string;
  readonly allUsers?: true;
} {
  if (allUsers !== true) return user === undefined ? {} : { userId: user };
  if (user === undefined) return { allUsers };
  const problem = "--all-users and --user contradict each other";
  throw new SkeinError("invalid_arguments", { problem, advice: "Leave one of them out" });
}

export const userColumn: Column<{
  readonly userId?: string;
  readonly namespace?: readonly string[];
  readonly store?: string;
}> = {
  title: "USER",
  text: ({ userId, namespace, store }) => {
    const user = spaceOf(userId ?? null);
    const folders = namespace ?? user.namespace;
    const named = store ?? user.store;
    return [
      user.userId ?? "(unnamed)",
      ...(folders === null ? [] : [`in ${folders.join("/")}`]),
      ...(named === null ? [] : [`of store ${named}`]),
    ].join(" ");
  },
  whole: true,
};

/** A command line to suggest, with the same folder, user and agent. */
export function commandLine(terminal: Terminal, options: GlobalOptions, words: readonly string[]): string {
  const { dir, config, user, agent } = options;
  const again = Object.entries({ dir, config, user, agent }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, value],
  );
  return [terminal.command, ...[...words, ...again].map(quoted)].join(" ");
}

/** Quotes a word for a shell. */
function quoted(word: string): string {
  return /^[\w./:@%+=,…-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
