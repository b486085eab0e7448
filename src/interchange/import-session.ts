import type { Steps } from "../core/slices.ts";
import { importClaudeCode } from "./import-claude-code.ts";
import { importCodex } from "./import-codex.ts";
import { importPi } from "./import-pi.ts";
import type { ImportedSession, ImportOptions } from "./imported.ts";
import { recognise } from "./recognise.ts";

/** A session of any program that we know; `null` when it is of none. Never throws, whatever the bytes. */
export function* importSession(
  bytes: string | Uint8Array,
  options: ImportOptions = {},
): Steps<ImportedSession | null> {
  switch (recognise(bytes)) {
    case "skein":
    case "pi":
      return yield* importPi(bytes, options);
    case "claude-code":
      return yield* importClaudeCode(bytes, options);
    case "codex":
      return yield* importCodex(bytes, options);
    default:
      return null;
  }
}
