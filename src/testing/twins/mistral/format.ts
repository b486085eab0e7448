import type { TwinRequest, WireFormat } from "../contract.ts";
import { isFields } from "../openai-shared-values.ts";
import { checkMistral } from "./check.ts";
import { mistralErrorBody } from "./errors.ts";
import { mistralAnswer, mistralEvents } from "./reply.ts";

/** Mistral's chat completions, `POST /v1/chat/completions`. Any key is taken. */
export const mistral: WireFormat = {
  api: "mistral-conversations",
  serves: ({ method, path }) => method === "POST" && path.split("?")[0] === "/v1/chat/completions",
  check: checkMistral,
  streams: ({ body }: TwinRequest) => isFields(body) && body.stream === true,
  events: mistralEvents,
  answer: mistralAnswer,
  errorBody: mistralErrorBody,
};
