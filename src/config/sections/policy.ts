import type { TranscriptPolicy } from "../../transcript/contract.ts";
import { choice, flag, orNone } from "../settings/kinds.ts";
import type { Group, Setting, ValueKind } from "../settings/setting.ts";

/** What of a transcript policy a model may have otherwise; images are `vision`. */
export type PolicySettings = Omit<TranscriptPolicy, "provider" | "api" | "model" | "images">;

function override<T>(about: string, kind: ValueKind<T>): Setting<T | null> {
  const meaning = "what its wire format asks for";
  return {
    node: "setting",
    about: `${about}; null: by its wire format.`,
    kind: orNone(kind, meaning),
    fallback: () => null,
  };
}

const fields: { readonly [Field in keyof PolicySettings]: Setting<PolicySettings[Field] | null> } = {
  sanitizeMode: override(
    "Whether all of a transcript is made clean, or its images alone",
    choice("full", "images-only"),
  ),
  toolCallIds: override("Which ids of tool calls it takes", choice("strict", "strict9", "kept")),
  callsWithoutTools: override(
    "How it gets earlier tool calls in a request without tools",
    choice("native", "text"),
  ),
  repairToolPairing: override("Whether calls and results are put together again", flag),
  missingResults: override("What becomes of a call without a result", choice("synthetic", "drop")),
  thinking: override(
    "In which form it takes its own thinking back",
    choice("signed", "base64", "items", "plain", "none"),
  ),
  foreignThinking: override("What becomes of another model's thinking", choice("text", "drop")),
  firstTurn: override("Who must have the first turn", choice("user", "any")),
  turns: override("Whose rules turns are held to", choice("anthropic", "gemini", "mistral", "any")),
  toolResultImages: override("Where images of a tool's result may stand", choice("inside", "behind")),
};

/** For servers that are not quite what they say they are. */
export const policy = {
  node: "group",
  about: "What the model asks of a transcript, where it is otherwise than its wire format.",
  fields,
} satisfies Group;
