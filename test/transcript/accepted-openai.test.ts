import { describeProvider } from "./accepted.ts";
import { speakerOf } from "./conversation.ts";

describeProvider("[TR15] whatever is in the session: OpenAI Responses", speakerOf("gpt-5"), [
  "last_item_assistant",
  "tool_result_without_call",
  "empty_content",
  "duplicate_call_id",
  "tool_call_without_result",
  "bad_function_name",
  "bad_arguments",
  "bad_call_id",
  "image_not_base64",
  "reasoning_without_item",
]);
