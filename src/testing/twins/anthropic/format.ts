import type { WireFormat } from "../contract.ts";
import { fieldsOf, pathOf } from "../fields.ts";
import { checkMessages } from "./check.ts";
import { eventsOf } from "./events.ts";
import { errorBody } from "./refusal.ts";
import { answerOf } from "./reply.ts";

/** Anthropic's Messages API. */
export const anthropic: WireFormat = {
  api: "anthropic-messages",
  serves: ({ method, path }) => method === "POST" && pathOf(path) === "/v1/messages",
  check: checkMessages,
  streams: ({ body }) => fieldsOf(body)?.stream === true,
  events: eventsOf,
  answer: answerOf,
  errorBody,
};
