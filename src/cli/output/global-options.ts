import { SkeinError } from "../../core/errors.ts";
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
export function whoseRows({ user, allUsers }: GlobalOptions & AllUsersOption): {
  readonly userId?: string;
  readonly allUsers?: true;
} {
  if (allUsers !== true) return user === undefined ? {} : { userId: user };
  if (user === undefined) return { allUsers };
  const problem = "--all-users and --user say different things";
  throw new SkeinError("invalid_arguments", { problem, advice: "Leave one of them out" });
}

/** Whose a row is. */
export const userColumn: Column<{ readonly userId?: string }> = {
  title: "USER",
  text: ({ userId }) => userId ?? "(unnamed)",
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
