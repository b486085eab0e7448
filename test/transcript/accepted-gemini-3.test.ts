import { describeProvider } from "./accepted.ts";
import { speakerOf } from "./conversation.ts";

describeProvider("[TR15] whatever is in the session: Gemini 3", speakerOf("gemini-3-pro-preview"), [
  "last_turn_model",
  "call_turn_misplaced",
  "empty_parts",
  "turns_not_alternating",
  "response_without_call",
  "function_name",
  "signature_corrupted",
]);
