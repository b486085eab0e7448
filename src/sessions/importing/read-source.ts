import { SkeinError } from "../../core/errors.ts";
import type { Steps } from "../../core/slices.ts";
import { importClaudeCode } from "../../interchange/import-claude-code.ts";
import { importCodex } from "../../interchange/import-codex.ts";
import { importPi } from "../../interchange/import-pi.ts";
import { importSession, recognizeSource } from "../../interchange/import-session.ts";
import type { ImportedSession } from "../../interchange/imported-session.ts";
import { splitPath } from "./paths.ts";

/** Programs that sessions can be imported from, as `--from` names them. */
export const programs = ["pi", "openclaw", "claude-code", "codex"] as const;
export type Program = (typeof programs)[number];

const readers = {
  pi: importPi,
  openclaw: importPi,
  "claude-code": importClaudeCode,
  codex: importCodex,
} as const satisfies Record<Program, unknown>;

const programNames: Readonly<Record<Program | "skein", string>> = {
  skein: "Skein",
  pi: "pi",
  openclaw: "OpenClaw",
  "claude-code": "Claude Code",
  codex: "Codex",
};

interface Named {
  readonly file: string;
  readonly isNamed: boolean;
}

/**
 * Why a transcript is not imported with `--from`, `null` if it is: only sessions of that program are. A file that the user names is
 * read as the user says, unless it is another program's.
 */
export function otherProgram({ isNamed }: Named, bytes: Uint8Array, from: Program | null): string | null {
  if (from === null) return null;
  const found = recognizeSource(bytes);
  if (isOf(from, found) || (found === null && isNamed)) return null;
  if (found === null) return "of no program that is known";
  return `of ${programNames[found]}, not of ${programNames[from]}`;
}

/** Reads one transcript that {@link otherProgram} has nothing against. */
export function* readSource(
  { file, isNamed }: Named,
  bytes: Uint8Array,
  from: Program | null,
): Steps<ImportedSession> {
  const options = { file: splitPath(file).name };
  if (from !== null && isNamed) return orNothing(file, yield* readers[from](bytes, options));
  const imported = yield* importSession(bytes, options);
  if (imported === null) throw noSession(file, "it is of no program that is known");
  return orNothing(file, imported);
}

function isOf(program: Program, source: ReturnType<typeof recognizeSource>): boolean {
  const known = program === "openclaw" ? "pi" : program;
  return source === known || (source === "skein" && known === "pi");
}

/** A session in which nothing was understood is none. */
function orNothing(file: string, imported: ImportedSession): ImportedSession {
  if (imported.tree.size > 0) return imported;
  throw noSession(file, "nothing in it is an entry");
}

function noSession(file: string, problem: string): SkeinError {
  return new SkeinError("not_a_session", { file, problem });
}
