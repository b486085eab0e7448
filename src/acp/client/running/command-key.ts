/**
 * Which command is which: two with the same key do the same. Words and a line for a shell are never taken for one another,
 * unless the line is made of plain words, with which a shell does nothing of its own.
 */

/** Of a call, by its raw input; `null`: it names no command. */
export function callKey(command: unknown, args: unknown): string | null {
  const parts = texts([command, args ?? []].flat());
  if (parts === null) return null;
  return Array.isArray(command) || parts.length > 1 ? wordsKey(parts) : lineKey(parts[0] ?? "");
}

/** Of a terminal: its own, and that of the line where it runs a shell with one. */
export function terminalKeys(command: string, args: readonly string[]): readonly string[] {
  if (args.length === 0) return [lineKey(command)];
  const isShell =
    /^(?:.*\/)?(?:ba|z|da)?sh$/.test(command) && args.length === 2 && /^-l?c$/.test(args[0] ?? "");
  return [wordsKey([command, ...args]), ...(isShell ? [lineKey(args[1] ?? "")] : [])];
}

/** For people to read; `null`: it names no command. */
export function lineOf(command: unknown, args: unknown): string | null {
  return texts([command, args ?? []].flat())?.join(" ") ?? null;
}

function texts(parts: readonly unknown[]): readonly string[] | null {
  return parts.length > 0 && parts.every((part) => typeof part === "string") ? parts : null;
}

const plainLine = /^[\w@%+:,./-]+(?: [\w@%+=:,./-]+)*$/;

function lineKey(line: string): string {
  return plainLine.test(line) ? wordsKey(line.split(" ")) : JSON.stringify(line);
}

function wordsKey(words: readonly string[]): string {
  return JSON.stringify(words);
}
