import { scriptedModel } from "../src/agents/rehearsal/scripted-model.ts";

/**
 * The model and the tool for the measured turns. The model has no thinking time, makes two parallel calls, and then
 * answers.
 */

export const weatherParameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
} as const;

export const weatherIn = (city: string): string => `${city}: 17 degrees, rain from noon on.`;

export const textOf = (round: number): string => `How is the weather in Kyoto and in Osaka on day ${round}?`;

const answer = { text: "Rain in both, from noon on. Take an umbrella." };
const calls = ["Kyoto", "Osaka"].map((city) => ({ name: "weather", arguments: { city } }));

/** Calls two tools unless the last message contains their results. */
export function model() {
  return scriptedModel(({ prompt }) => (prompt.at(-1)?.role === "tool" ? answer : { calls }));
}

/** Answers immediately. */
export function plainModel() {
  return scriptedModel(() => answer);
}
