import { describeProvider } from "./accepted.ts";
import { speakerOf } from "./conversation.ts";

describeProvider("[TR15] whatever is in the session: OpenAI Chat Completions", speakerOf("qwen3"), [
  "unknown_parameter",
  "tool_result_without_call",
  "last_message_assistant",
  "empty_content",
  "tool_call_without_result",
  "bad_call_id",
  "bad_function_name",
]);
