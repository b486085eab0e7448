import type { ModelMessage } from "ai";
import { jsonSchema, stepCountIs, streamText, tool } from "ai";
import { model, textOf, weatherIn, weatherParameters } from "./scripted.ts";
import type { Acts } from "./side.ts";
import { timedOften } from "./side.ts";

/** The same turn with only the AI SDK, as a loop over an in-memory list of messages without storage or checks. */

const weather = tool({
  description: "The weather of a city.",
  inputSchema: jsonSchema<{ city: string }>({ ...weatherParameters, required: ["city"] }),
  execute: ({ city }) => weatherIn(city),
});

/** Resolved from this file, because the peers might install their own version. */
type Model = Parameters<typeof streamText>[0]["model"];

/** A conversation with the model. `say` runs one turn. */
export function bareConversation(given: ReturnType<typeof model>): { say(text: string): Promise<string> } {
  const messages: ModelMessage[] = [];
  const asked = given as unknown as Model;
  return {
    async say(text) {
      messages.push({ role: "user", content: text });
      const instructions = "You know the weather.";
      const told = { model: asked, instructions, messages, tools: { weather }, stopWhen: stepCountIs(20) };
      const answer = streamText(told);
      messages.push(...(await answer.responseMessages));
      return answer.text;
    },
  };
}

export const acts: Acts = {
  turn: async ({ count = 1, turns = 1 }) => {
    const talks = Array.from({ length: Math.ceil(count / turns) }, () => bareConversation(model()));
    return { ms: await timedOften(count, (round) => talks[round % talks.length]?.say(textOf(round))) };
  },
};
