import type { WireFormat } from "../contract.ts";
import { checkGenerate } from "./check.ts";
import { answerOf, eventsOf } from "./chunks.ts";
import { calledBy } from "./models.ts";
import { errorBody } from "./refusal.ts";

const methods = ["generateContent", "streamGenerateContent"];

/** Google's Generative Language API. */
export const google: WireFormat = {
  api: "google-generative-ai",
  serves: ({ method, path }) => method === "POST" && methods.includes(calledBy(path)?.method ?? ""),
  check: checkGenerate,
  streams: ({ path }) =>
    calledBy(path)?.method === "streamGenerateContent" && /[?&]alt=sse(?:&|$)/.test(path),
  events: eventsOf,
  answer: answerOf,
  errorBody,
};
