import type { TwinRequest, WireFormat } from "../contract.ts";
import { openaiErrorBody } from "../openai-shared-errors.ts";
import { isFields } from "../openai-shared-values.ts";
import { checkChat } from "./check.ts";
import { chatAnswer, chatEvents } from "./reply.ts";

/** OpenAI's Chat Completions, `POST /v1/chat/completions`. Any key is taken; nothing is stored. */
export const openaiChat: WireFormat = {
  api: "openai-completions",
  serves: ({ method, path }) => method === "POST" && path.split("?")[0] === "/v1/chat/completions",
  check: checkChat,
  streams: ({ body }: TwinRequest) => isFields(body) && body.stream === true,
  events: chatEvents,
  answer: chatAnswer,
  errorBody: openaiErrorBody,
};
