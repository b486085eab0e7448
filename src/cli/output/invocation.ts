import { SkeinError } from "../../core/errors.ts";
import type { Terminal } from "./terminal.ts";

/** One invocation of a command: the terminal that it prints to, and its options. */
export interface Invocation<Options = unknown> {
  readonly terminal: Terminal;
  readonly options: GlobalOptions & Options;
}

/** Options that every command has. */
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

/** Returns the method params for `--user` and `--all-users`. */
export function userFilter({ options: { user, allUsers } }: Invocation<AllUsersOption>): {
  readonly userId?: string;
  readonly allUsers?: true;
} {
  if (allUsers !== true) return user === undefined ? {} : { userId: user };
  if (user === undefined) return { allUsers };
  const problem = "--all-users and --user cannot be combined";
  throw new SkeinError("invalid_arguments", { problem, advice: "Remove one of them" });
}

/** Returns a command line to suggest, with the same folder, user and agent. */
export function commandLine({ terminal, options }: Invocation, ...words: readonly string[]): string {
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
