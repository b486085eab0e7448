import type { TwinRequest, WireFormat } from "../contract.ts";
import { openaiErrorBody } from "../openai-shared-errors.ts";
import { isFields } from "../openai-shared-values.ts";
import { checkResponses } from "./check.ts";
import { responsesAnswer, responsesEvents } from "./reply.ts";

/** OpenAI's Responses, `POST /v1/responses`. Any key is taken; nothing is stored, whatever `store` says. */
export const openaiResponses: WireFormat = {
  api: "openai-responses",
  serves: ({ method, path }) => method === "POST" && path.split("?")[0] === "/v1/responses",
  check: checkResponses,
  streams: ({ body }: TwinRequest) => isFields(body) && body.stream === true,
  events: responsesEvents,
  answer: responsesAnswer,
  errorBody: openaiErrorBody,
};
