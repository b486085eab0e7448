import type {
  PromptCapabilities,
  SessionConfigOption,
  SessionModeState,
} from "@agentclientprotocol/sdk/unstable";
import { isRecord } from "../../core/is-record.ts";
import { escapeToLine } from "../../core/text.ts";
import { unsupported } from "./errors.ts";

/**
 * Parses an agent's responses, which the SDK does not validate. An unusable response throws an error whose message
 * completes the sentence "its response does not follow the protocol: …".
 */

export interface InitializeResponse {
  readonly protocolVersion: number;
  readonly name: string | null;
  readonly version: string | null;
  readonly canLoad: boolean;
  readonly canResume: boolean;
  readonly canFork: boolean;
  readonly canList: boolean;
  /** Whether a session accepts a system prompt. If not, the system prompt is added to the prompts. */
  readonly takesSystem: boolean;
  readonly promptCapabilities: PromptCapabilities;
  /** The names of the login methods. */
  readonly authMethods: readonly string[];
}

const maxSessionIdChars = 512;
const maxAuthMethods = 20;
const maxNameChars = 100;

export function readInitializeResponse(response: unknown): InitializeResponse {
  const { protocolVersion, agentInfo, agentCapabilities, authMethods } = recordOf(response);
  if (typeof protocolVersion !== "number") throw new Error("it has no protocolVersion");
  const info = isRecord(agentInfo) ? agentInfo : {};
  const capabilities = isRecord(agentCapabilities) ? agentCapabilities : {};
  const { promptCapabilities, sessionCapabilities } = capabilities;
  const session = isRecord(sessionCapabilities) ? sessionCapabilities : {};
  return {
    protocolVersion,
    name: nameOf(info.title ?? info.name),
    version: nameOf(info.version),
    canLoad: capabilities.loadSession === true,
    canResume: isRecord(session.resume),
    canFork: isRecord(session.fork),
    canList: isRecord(session.list),
    takesSystem: isRecord(session.systemPrompt),
    promptCapabilities: isRecord(promptCapabilities) ? promptCapabilities : {},
    authMethods: (Array.isArray(authMethods) ? authMethods.filter(isRecord) : [])
      .map(({ name, id }) => nameOf(name || id))
      .filter((name) => name !== null)
      .slice(0, maxAuthMethods),
  };
}

/**
 * Returns the ID of a session that the agent has just created. The ID is stored, shown to users and passed to models.
 */
export function readSessionId(response: unknown): string {
  const { sessionId } = recordOf(response);
  if (typeof sessionId !== "string") throw new Error("it has no sessionId");
  const { length } = sessionId;
  if (length > 0 && length <= maxSessionIdChars && escapeToLine(sessionId) === sessionId) return sessionId;
  throw new Error(
    `its session ID is not a name of 1 to ${maxSessionIdChars} printable characters (${length})`,
  );
}

/** The settings that an agent offers for an open session. */
export interface SessionResponse {
  readonly configOptions?: readonly SessionConfigOption[] | null | undefined;
  readonly modes?: SessionModeState | null | undefined;
  /** `{availableModels: [{modelId, name}], currentModelId}` from agents that predate config options. */
  readonly models?: unknown;
}

/** Skips malformed options and modes. */
export function readSessionResponse(response: unknown): SessionResponse {
  const { configOptions, modes, models } = recordOf(response);
  return {
    configOptions: listOf("configOptions", configOptions).filter(isSelect),
    ...(isRecord(modes) && { modes: readModes(modes) }),
    models,
  };
}

function readModes({ availableModes, currentModeId }: Record<string, unknown>): SessionModeState {
  return {
    currentModeId: typeof currentModeId === "string" ? currentModeId : "",
    availableModes: readChoices(listOf("availableModes", availableModes), "id").map(({ value, name }) => ({
      id: value,
      name,
    })),
  };
}

function isSelect(option: unknown): option is SessionConfigOption {
  if (!isRecord(option) || option.type !== "select" || !Array.isArray(option.options)) return false;
  if (typeof option.id !== "string" || typeof option.currentValue !== "string") return false;
  return option.options.every((each) =>
    isRecord(each) && Array.isArray(each.options) ? each.options.every(isOption) : isOption(each),
  );
}

function isOption(each: unknown): boolean {
  return isRecord(each) && typeof each.value === "string" && typeof each.name === "string";
}

function nameOf(value: unknown): string | null {
  const name = typeof value === "string" ? value.trim().slice(0, maxNameChars) : "";
  return name === "" ? null : name;
}

function recordOf(response: unknown): Record<string, unknown> {
  if (isRecord(response)) return response;
  throw new Error("it is not an object");
}

function listOf(name: string, value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value;
  throw new Error(`its ${name} are not a list`);
}

/** The settings that a session needs. `null` keeps the agent's default. */
export interface WantedSettings {
  readonly model: string | null;
  readonly thinking: string | null;
}

export type SettingChange =
  | { readonly set: "option"; readonly configId: string; readonly value: string }
  | { readonly set: "mode" | "model"; readonly value: string };

/** The names that messages and the parameters of `sessions_spawn` use for the settings. */
const categories = {
  model: { title: "model", parameter: "model" },
  thought_level: { title: "thinking level", parameter: "thinking" },
} as const;

/**
 * Returns the changes that apply the wanted settings, in order. Throws `acp_unsupported` with the values that the
 * agent offers.
 */
export function settingChanges(
  agent: string,
  wanted: WantedSettings,
  offered: SessionResponse,
  /**
   * `true` if the settings were applied earlier. A setting that the agent no longer offers is then skipped instead of
   * rejected.
   */
  wasSet = false,
): readonly SettingChange[] {
  const wantedByCategory = { model: wanted.model, thought_level: wanted.thinking };
  return (["model", "thought_level"] as const).flatMap((category): SettingChange[] => {
    const value = wantedByCategory[category];
    if (value === null) return [];
    const setting = settingOf(category, offered);
    if (setting === null && wasSet) return [];
    const { title, parameter } = categories[category];
    if (setting === null) throw unsupported(agent, `its ${title} cannot be set`, `Omit ${parameter}`);
    const { current, choices, change } = setting;
    const found =
      choices.find((each) => each.value === value) ??
      choices.find((each) => isSameName(each.value, value)) ??
      choices.find((each) => isSameName(each.name, value));
    if (found === undefined) {
      const values = choices.map((each) => each.value).join(", ") || "none";
      throw unsupported(agent, `it has no ${title} "${value}"`, `Use one of: ${values}`);
    }
    return found.value === current ? [] : [{ ...change, value: found.value }];
  });
}

interface Choice {
  readonly value: string;
  readonly name: string;
}

interface Setting {
  readonly current: string;
  readonly choices: readonly Choice[];
  readonly change: { readonly set: "option"; readonly configId: string } | { readonly set: "mode" | "model" };
}

/** Older agents have no config options. They list their models separately and offer thinking levels as modes. */
function settingOf(
  category: keyof typeof categories,
  { configOptions, modes, models }: SessionResponse,
): Setting | null {
  const option = configOptions?.find((each) => each.category === category && each.type === "select");
  if (option?.type === "select") {
    const choices = option.options.flatMap((each) => ("options" in each ? each.options : [each]));
    return { current: option.currentValue, choices, change: { set: "option", configId: option.id } };
  }
  return category === "model" ? modelSetting(models) : levelSetting(modes);
}

function modelSetting(models: unknown): Setting | null {
  const { availableModels, currentModelId } = isRecord(models) ? models : {};
  if (!Array.isArray(availableModels)) return null;
  return {
    current: typeof currentModelId === "string" ? currentModelId : "",
    choices: readChoices(availableModels, "modelId"),
    change: { set: "model" },
  };
}

function readChoices(list: readonly unknown[], idField: "id" | "modelId"): Choice[] {
  return list.filter(isRecord).flatMap(({ [idField]: value, name }) => {
    if (typeof value !== "string") return [];
    return [{ value, name: typeof name === "string" ? name : value }];
  });
}

/** Considers only modes named after a thinking level, because other modes grant permissions. */
function levelSetting(modes: SessionModeState | null | undefined): Setting | null {
  const choices = (modes?.availableModes ?? [])
    .filter(({ id, name }) => levels.has(normalize(id)) || levels.has(normalize(name)))
    .map(({ id, name }) => ({ value: id, name }));
  if (!modes || choices.length === 0) return null;
  return { current: modes.currentModeId, choices, change: { set: "mode" } };
}

const levels: ReadonlySet<string> = new Set("off none minimal low medium high xhigh max adaptive".split(" "));

function isSameName(name: string, wanted: string): boolean {
  return normalize(name) === normalize(wanted);
}

function normalize(name: string): string {
  return name.trim().toLowerCase();
}
