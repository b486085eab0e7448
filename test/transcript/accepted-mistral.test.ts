import { describeProvider } from "./accepted.ts";
import { speakerOf } from "./conversation.ts";

describeProvider("[TR15] whatever is in the session: Mistral", speakerOf("magistral-medium-latest"), [
  "bad_call_id",
  "unexpected_role",
  "tool_result_without_call",
  "duplicate_call_id",
  "tool_call_without_result",
  "too_many_images",
  "empty_content",
  "bad_arguments",
]);
