import { describeProvider } from "./accepted.ts";
import { speakerOf } from "./conversation.ts";

describeProvider("[TR15] whatever is in the session: Anthropic", speakerOf("claude-sonnet-4-5"), [
  "tool_use_id_form",
  "thinking_signature",
  "tool_result_without_call",
  "tool_use_unanswered",
  "blank_text",
  "first_turn_not_user",
  "tool_use_id_repeated",
  "turns_not_alternating",
  "tool_use_name",
  "empty_text",
  "tool_result_repeated",
  "image_unreadable",
  "ill_formed_text",
]);
