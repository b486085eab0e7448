import { prependedContextType as customType } from "../core/messages.ts";
import type { EntryDraft } from "../core/seal.ts";

/** What hooks put before a prompt: seen by the model, kept beside what the user said, never inside it. */

/** The entry that keeps it, to be written before the user's own; `null`: there is nothing to keep. */
export function prependedEntry(context: string | null): EntryDraft | null {
  return isBlank(context) ? null : { type: "custom_message", customType, content: context, display: false };
}

function isBlank(context: string | null): context is null {
  return context === null || context.trim() === "";
}
