import { SkeinError } from "../../core/errors.ts";
import type { FailedRow } from "../../protocol/interchange.ts";

/** A file that could not be imported, and why; the others go on. */
export function failedRow(file: string, error: unknown): FailedRow {
  const { code, message } = error instanceof SkeinError ? error : asSkeinError(file, error as Error);
  return { file, code, error: message };
}

function asSkeinError(file: string, error: Error): SkeinError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") {
    const advice = "The list names it, but it is not there";
    return new SkeinError("not_found", { what: "File", name: file, advice }, { cause: error });
  }
  if (code === "ERR_FS_FILE_TOO_LARGE") return new SkeinError("too_large", { what: file }, { cause: error });
  if (code === undefined) return new SkeinError("internal", { problem: error.message }, { cause: error });
  const advice = "Check that you may read it";
  return new SkeinError("unreadable_file", { file, problem: error.message, advice }, { cause: error });
}
