import { describeProvider } from "./accepted.ts";
import { speakerOf } from "./conversation.ts";

describeProvider("[TR15] whatever is in the session: Google", speakerOf("gemini-2.5-pro"), [
  "last_turn_model",
  "call_turn_misplaced",
  "empty_parts",
  "turns_not_alternating",
  "response_count",
  "response_without_call",
  "function_name",
  "function_args",
  "signature_base64",
  "ill_formed_text",
]);
