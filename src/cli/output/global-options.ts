import { SkeinError } from "../../core/errors.ts";
import { spaceOf } from "../../core/space.ts";
import type { Column } from "./table.ts";
import type { Terminal } from "./terminal.ts";

/** What every command understands, before or after its name. */
export interface GlobalOptions {
  readonly dir?: string;
  readonly config?: string;
  readonly user?: string;
  readonly agent?: string;
  readonly json?: boolean;
}

/** Of commands that list. */
export interface AllUsersOption {
  readonly allUsers?: boolean;
}

/** Whose rows a list shows, as params of methods have it. */
export function userFilter({ user, allUsers }: GlobalOptions & AllUsersOption): {
  readonly userId?: string;
  readonly allUsers?: true;
} {
  if (allUsers !== true) return user === undefined ? {} : { userId: user };
  if (user === undefined) return { allUsers };
  const problem = "--all-users and --user say different things";
  throw new SkeinError("invalid_arguments", { problem, advice: "Leave one of them out" });
}

/** Whose a row is. */
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

/** A command for the user to type next, about the same folder, user and agent. */
export function commandLine(terminal: Terminal, options: GlobalOptions, words: readonly string[]): string {
  const { dir, config, user, agent } = options;
  const again = Object.entries({ dir, config, user, agent }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, value],
  );
  return [terminal.command, ...[...words, ...again].map(quoted)].join(" ");
}

/** As a shell reads it back. */
function quoted(word: string): string {
  return /^[\w./:@%+=,…-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
