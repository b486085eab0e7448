import { CommanderError } from "commander";
import { CallError } from "../../client/contract.ts";
import type { ConfigError } from "../../config/problems.ts";
import { SkeinError } from "../../core/errors.ts";
import { escapeToLine } from "../../core/text.ts";
import type { WireError } from "../../protocol/errors.ts";
import type { RefusalPayload } from "../../protocol/session-views.ts";
import type { Terminal } from "./terminal.ts";
import { paint, printJson } from "./terminal.ts";

/** 0: success, 1: failure, 2: usage error. */
export type ExitCode = 0 | 1 | 2;

/** Thrown when the command has failed and has already printed the reason. */
export class CommandFailed extends Error {
  readonly exit: ExitCode;

  constructor(exit: ExitCode = 1) {
    super("The command failed.");
    this.exit = exit;
  }
}

/**
 * Prints an error as one line, or as JSON. Further problems in a configuration follow, one per line.
 * `terminal.command` is the command line that failed.
 */
export function reportFailure(error: unknown, terminal: Terminal, json: boolean): ExitCode {
  if (error instanceof CommandFailed) return error.exit;
  const { code, text, exit } = describe(error, terminal.command);
  const refusal: RefusalPayload = { status: "error", code, error: text };
  if (json) printJson(terminal, refusal);
  else if (wireErrorOf(error) !== null) {
    terminal.err(
      `${paint(terminal, "red", "error:", "err")} ${escapeToLine(text)} (${escapeToLine(code)})\n`,
    );
  } else terminal.err(`${paint(terminal, "red", "error:", "err")} ${escapeToLine(text)}\n`);
  if (!json) for (const problem of furtherProblems(error)) terminal.err(`  ${escapeToLine(problem)}\n`);
  return exit;
}

/** Returns the problems in a configuration that the error's message does not describe. */
function furtherProblems(error: unknown): readonly string[] {
  const isConfig = error instanceof SkeinError && error.code === "invalid_config" && "problems" in error;
  return isConfig ? (error as ConfigError).problems.slice(1) : [];
}

function describe(error: unknown, command: string): { code: string; text: string; exit: ExitCode } {
  if (error instanceof CommanderError) return describe(usageError(error, command), command);
  if (error instanceof SkeinError) {
    return { code: error.code, text: error.message, exit: error.code === "invalid_arguments" ? 2 : 1 };
  }
  const wire = wireErrorOf(error);
  if (wire !== null) {
    // The same code as when the command runs without a gateway.
    const code = wire.details?.reason ?? wire.code;
    return { code, text: paramsErrorText(wire, command) ?? wire.message, exit: misuses.has(code) ? 2 : 1 };
  }
  if (error instanceof RangeError && /string length/.test(error.message)) {
    return describe(new SkeinError("too_large", { what: "The output" }), command);
  }
  const ofFile = fileSystemError(error);
  if (ofFile !== null) return describe(ofFile, command);
  const problem = error instanceof Error ? error.message : String(error);
  return describe(new SkeinError("internal", { problem }, { cause: error }), command);
}

/** Users enter options, not params, so the message names the options. */
function paramsErrorText({ details }: WireError, command: string): string | null {
  const [first] = details?.problems ?? [];
  if (first === undefined) return null;
  return `"${first.path}" ${first.problem}. Run \`${command} --help\` for usage.`;
}

const misuses: ReadonlySet<string> = new Set(["invalid_arguments", "invalid_request"]);

/**
 * Returns an error from a gateway, or from the same checks in this process. `Refused` is recognized by name, to avoid
 * loading its module.
 */
function wireErrorOf(error: unknown): WireError | null {
  if (error instanceof CallError) {
    const { code, message, details } = error;
    return { code, message, details };
  }
  const isRefused = error instanceof Error && error.name === "Refused" && "wire" in error;
  return isRefused ? (error.wire as WireError) : null;
}

function usageError(error: CommanderError, command: string): SkeinError {
  const problem = error.message
    .replace(/^error: /, "")
    .replace(/\n/g, " ")
    .replace(/\.$/, "");
  return new SkeinError("invalid_arguments", {
    problem: problem.charAt(0).toUpperCase() + problem.slice(1),
    advice: `Run \`${command} --help\` for usage`,
  });
}

type Trouble = readonly [code: "write_failed" | "unreadable_file", problem: string, advice: string];

const otherFolder = "specify a different folder with --dir";
const notAllowed: Trouble = [
  "write_failed",
  "permission denied",
  "Check the permissions, or specify your own folder with --dir",
];

/** System errors that the user can fix. */
const troubles: Readonly<Record<string, Trouble>> = {
  EACCES: notAllowed,
  EPERM: notAllowed,
  EROFS: ["write_failed", "it is read-only", `Make it writable, or ${otherFolder}`],
  ENOSPC: ["write_failed", "the disk is full", "Free some space and try again"],
  EDQUOT: ["write_failed", "the disk quota is exhausted", "Free some space and try again"],
  ENOTDIR: ["unreadable_file", "a part of its path is not a folder", `Correct the path, or ${otherFolder}`],
  EEXIST: ["write_failed", "a file with that name already exists", `Remove it, or ${otherFolder}`],
  EMFILE: ["unreadable_file", "too many files are open", "Raise the limit (ulimit -n) and try again"],
};

/** Returns a file system error with its remedy, or `null` for any other error. */
export function fileSystemError(error: unknown): SkeinError | null {
  if (!(error instanceof Error)) return null;
  const { code = "", path } = error as NodeJS.ErrnoException;
  const trouble = troubles[code];
  if (trouble === undefined || path === undefined) return null;
  const [as, problem, advice] = trouble;
  return new SkeinError(as, { file: path, problem: `${problem} (${code})`, advice }, { cause: error });
}
