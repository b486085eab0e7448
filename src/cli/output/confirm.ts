import { SkeinError } from "../../core/errors.ts";
import { escapeToLine } from "../../core/text.ts";
import type { Terminal } from "./terminal.ts";

/** Asks before something is done for good. Goes on only with a yes: from the user, or as `--yes`. */
export async function confirm(
  terminal: Terminal,
  question: string,
  options: { readonly yes?: boolean },
): Promise<void> {
  if (options.yes === true) return;
  if (terminal.ask === null) {
    throw new SkeinError("invalid_arguments", {
      problem: "This is done for good, and there is nobody to ask",
      advice: "Add --yes to do it without asking",
    });
  }
  const answer = await terminal.ask(`${escapeToLine(question)} [y/N] `);
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new SkeinError("invalid_arguments", {
    problem: "Nothing was changed: the answer was not yes",
    advice: "Run it again and answer y, or add --yes",
  });
}
