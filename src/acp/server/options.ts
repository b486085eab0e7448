import type { SessionConfigOption, SessionConfigSelectOption } from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import type { Params } from "../../protocol/methods/method-table.ts";
import type { SessionDetailsPayload } from "../../protocol/session-details.ts";
import type { AcpParts } from "./contract.ts";

/** The model and the thinking of a session, as an editor offers them. */

type Patch = Pick<Params<"sessions.patch">, "model" | "thinkingLevel">;

/** Means: as the agent has it. */
const byDefault = "default";
const levels = ["off", "minimal", "low", "medium", "high", "xhigh"] as const;

/** Nothing, for whoever may not change them. */
export async function configOptions(
  { calls, may }: AcpParts,
  details: SessionDetailsPayload,
): Promise<SessionConfigOption[]> {
  if (!may("sessions.patch")) return [];
  const { models } = await calls.call("models.list", {});
  const own = models.find((each) => each.agents.includes(details.agentId))?.model;
  return [
    select("model", "Model", details.model ?? byDefault, [
      { value: byDefault, name: own === undefined ? "The agent's own" : `The agent's own (${own})` },
      ...models.map(({ model }) => ({ value: model, name: model })),
    ]),
    select("thought_level", "Thinking", details.thinkingLevel ?? byDefault, [
      { value: byDefault, name: "As the agent has it" },
      ...levels.map((level) => ({ value: level, name: level })),
    ]),
  ];
}

/** What is known of a session may not be in the list: a model that was set by hand. */
function select(
  id: "model" | "thought_level",
  name: string,
  currentValue: string,
  known: SessionConfigSelectOption[],
): SessionConfigOption {
  const isKnown = known.some(({ value }) => value === currentValue);
  const options = isKnown ? known : [...known, { value: currentValue, name: currentValue }];
  return { type: "select", id, name, category: id, currentValue, options };
}

/** One value that was chosen, as `sessions.patch` takes it. */
export function patchOf(configId: string, value: unknown): Patch {
  if (typeof value !== "string") throw refused(`${configId} takes no ${typeof value}`);
  const chosen = value === byDefault ? null : value;
  if (configId === "model") return { model: chosen };
  if (configId !== "thought_level") throw refused(`There is no option "${configId}"`);
  const level = levels.find((each) => each === chosen) ?? null;
  if (level !== chosen) throw refused(`There is no thinking level "${value}"`);
  return { thinkingLevel: level };
}

function refused(problem: string): SkeinError {
  const advice = "Use one of the options that the session was opened with";
  return new SkeinError("invalid_arguments", { problem, advice });
}
