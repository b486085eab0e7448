import type { Terminal } from "./terminal.ts";

/** What every command understands, before or after its name. */
export interface GlobalOptions {
  readonly dir?: string;
  readonly config?: string;
  readonly user?: string;
  readonly agent?: string;
  readonly json?: boolean;
}

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
