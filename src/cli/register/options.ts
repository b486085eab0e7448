import { InvalidArgumentError, Option } from "commander";

/** The words that the help of all commands shares. */

export const refHelp =
  "a session: key, session id, label, a beginning of the id; or a file (with a / or .jsonl)";
export const sessionHelp = "a session: key, session id, label, or a beginning of the id";

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}\n`;
}

/** Understood before and after the name of a command. */
export function globalOptions(): Option[] {
  return [
    new Option("--dir <folder>", "where the sessions are (default: the configured one, else ~/.skein)"),
    new Option("--config <file>", "the configuration file (default: skein.yaml, found upwards from here)"),
    new Option("--user <id>", "whose sessions (default: the unnamed user's)"),
    new Option(
      "--agent <id>",
      "whose main and labels are meant; lists show this agent alone (default: main)",
    ),
    new Option("--json", "print JSON and nothing else"),
  ];
}

const largestNumber = 999_999;

export function wholeNumber(text: string): number {
  return upTo(largestNumber)(text);
}

/** Reads a whole number from 1 to `largest`. */
export function upTo(largest: number): (text: string) => number {
  return (text) => {
    const number = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : largest + 1;
    if (number <= largest) return number;
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${largest}.`);
  };
}

/** Of commands that list. */
export function allUsersOption(): Option {
  return new Option("--all-users", "of every user; each row names its user");
}

export function yesOption(): Option {
  return new Option("--yes", "do not ask");
}
