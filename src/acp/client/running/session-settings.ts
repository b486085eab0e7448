import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk/unstable";
import { isRecord } from "../../../core/shape.ts";
import { unsupported } from "./failures.ts";

/** What an agent told of a session when it opened it. */
export interface OpenedSettings {
  readonly configOptions?: readonly SessionConfigOption[] | null | undefined;
  readonly modes?: SessionModeState | null | undefined;
  /** Of before there were config options: `{availableModels: [{modelId, name}], currentModelId}`. */
  readonly models?: unknown;
}

/** What a session is to be set to; `null`: as the agent has it. */
export interface WantedSettings {
  readonly model: string | null;
  readonly thinking: string | null;
}

export type SettingChange =
  | { readonly set: "option"; readonly configId: string; readonly value: string }
  | { readonly set: "mode"; readonly modeId: string }
  | { readonly set: "model"; readonly modelId: string };

const words = { model: "model", thought_level: "thinking level" } as const;

/** What has to be set for it, in order; `acp_unsupported` where the agent cannot, with what it can. */
export function settingChanges(
  agent: string,
  wanted: WantedSettings,
  told: OpenedSettings,
  /** It was set to this before: what the agent does not offer now stays as it is. */
  isSet = false,
): readonly SettingChange[] {
  const to = (category: keyof typeof words, value: string | null) =>
    value === null || (isSet && choicesOf(category, told) === null)
      ? []
      : change(agent, category, value, told);
  return [...to("model", wanted.model), ...to("thought_level", wanted.thinking)];
}

function change(
  agent: string,
  category: keyof typeof words,
  wanted: string,
  told: OpenedSettings,
): SettingChange[] {
  const choices = choicesOf(category, told);
  const name = words[category];
  if (choices === null) {
    const setting = category === "model" ? "model" : "thinking";
    throw unsupported(agent, `its ${name} cannot be set`, `Leave ${setting} out`);
  }
  const found =
    choices.values.find(({ value }) => value === wanted) ??
    choices.values.find((each) => isNamed(each.value, wanted)) ??
    choices.values.find((each) => isNamed(each.name, wanted));
  if (found === undefined) {
    const known = choices.values.map(({ value }) => value).join(", ");
    throw unsupported(
      agent,
      `it has no ${name} "${wanted}"`,
      `Name one of: ${known === "" ? "none" : known}`,
    );
  }
  return found.value === choices.current ? [] : [choices.make(found.value)];
}

interface Choices {
  readonly current: string;
  readonly values: readonly { readonly value: string; readonly name: string }[];
  make(value: string): SettingChange;
}

/** Older agents have a list of models, and their thinking levels as modes. */
function choicesOf(category: string, { configOptions, modes, models }: OpenedSettings): Choices | null {
  const option = configOptions?.find((each) => each.category === category && each.type === "select");
  if (option?.type === "select") {
    const values = option.options.flatMap((each) => ("options" in each ? each.options : [each]));
    return {
      current: option.currentValue,
      values,
      make: (value) => ({ set: "option", configId: option.id, value }),
    };
  }
  return category === "model" ? modelChoices(models) : levelChoices(modes);
}

function modelChoices(models: unknown): Choices | null {
  const { availableModels: list, currentModelId: current } = isRecord(models) ? models : {};
  if (!Array.isArray(list)) return null;
  const values = list.filter(isRecord).flatMap(({ modelId, name }) => {
    if (typeof modelId !== "string") return [];
    return [{ value: modelId, name: typeof name === "string" ? name : modelId }];
  });
  return {
    current: typeof current === "string" ? current : "",
    values,
    make: (modelId) => ({ set: "model", modelId }),
  };
}

/** Most modes say what an agent may do unasked: never to be set by whoever wishes for a level. */
function levelChoices(modes: SessionModeState | null | undefined): Choices | null {
  const values = (modes?.availableModes ?? [])
    .filter(({ id, name }) => levels.has(plain(id)) || levels.has(plain(name)))
    .map(({ id, name }) => ({ value: id, name }));
  if (!modes || values.length === 0) return null;
  return { current: modes.currentModeId, values, make: (modeId) => ({ set: "mode", modeId }) };
}

const levels: ReadonlySet<string> = new Set([
  "off",
  "none",
  "minimal",
  "low",
  "medium",
  "high",
  "xhigh",
  "max",
  "adaptive",
]);

function isNamed(name: string, wanted: string): boolean {
  return plain(name) === plain(wanted);
}

function plain(name: string): string {
  return name.trim().toLowerCase();
}
