import { CommanderError } from "commander";
import { SkeinError } from "../../core/errors.ts";
import { escapeToLine } from "../../core/text.ts";
import type { RefusalPayload } from "../../protocol/session-payloads.ts";
import type { Terminal } from "./terminal.ts";
import { paint, printJson } from "./terminal.ts";

/** 0 fine, 1 failed, 2 misuse. */
export type ExitCode = 0 | 1 | 2;

/** A command that has told everything itself, and did not end well. */
export class CommandFailed extends Error {
  readonly exit: ExitCode;

  constructor(exit: ExitCode = 1) {
    super("The command has told what went wrong.");
    this.exit = exit;
  }
}

/** Tells what went wrong: one line for people, one JSON object with `--json`. */
export function reportFailure(error: unknown, terminal: Terminal, json: boolean): ExitCode {
  if (error instanceof CommandFailed) return error.exit;
  const { code, text, exit } = describe(error, terminal.command);
  const refusal: RefusalPayload = { status: "error", code, error: text };
  if (json) printJson(terminal, refusal);
  else terminal.err(`${paint(terminal, "red", "error:", "err")} ${escapeToLine(text)}\n`);
  return exit;
}

function describe(error: unknown, command: string): { code: string; text: string; exit: ExitCode } {
  if (error instanceof CommanderError) return describe(misuse(error, command), command);
  if (error instanceof SkeinError) {
    return { code: error.code, text: error.message, exit: error.code === "invalid_arguments" ? 2 : 1 };
  }
  const refused = refusedBy(error);
  if (refused !== null) return refused;
  if (error instanceof RangeError && /string length/.test(error.message)) {
    return describe(new SkeinError("too_large", { what: "The output" }), command);
  }
  const problem = error instanceof Error ? error.message : String(error);
  return describe(new SkeinError("internal", { problem }, { cause: error }), command);
}

/** What a method refused before it was tried, in the words of the protocol; `null`: it is something else. */
function refusedBy(error: unknown): { code: string; text: string; exit: ExitCode } | null {
  const { wire } = (error ?? {}) as { readonly wire?: { readonly code: string; readonly message: string } };
  if (wire === undefined) return null;
  return { code: wire.code, text: wire.message, exit: wire.code === "invalid_request" ? 2 : 1 };
}

function misuse(error: CommanderError, command: string): SkeinError {
  const problem = error.message
    .replace(/^error: /, "")
    .replace(/\n/g, " ")
    .replace(/\.$/, "");
  return new SkeinError("invalid_arguments", {
    problem: problem.charAt(0).toUpperCase() + problem.slice(1),
    advice: `\`${command} --help\` shows what can be typed`,
  });
}
