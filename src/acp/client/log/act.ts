import type { TurnEvent } from "../../../agents/contract.ts";
import type { EntryDraft, MessageDraft } from "../../../core/seal.ts";

/** What an update of an agent sets off, in order. */
export type Act =
  | { readonly act: "say"; readonly message: MessageDraft }
  | { readonly act: "note"; readonly draft: EntryDraft }
  | { readonly act: "emit"; readonly event: TurnEvent };
