import type {
  PromptCapabilities,
  SessionConfigOption,
  SessionModeState,
} from "@agentclientprotocol/sdk/unstable";
import { isRecord } from "../../../core/shape.ts";
import { escapeToLine } from "../../../core/text.ts";
import type { OpenedSettings } from "./session-settings.ts";

/** What an agent answers, as it is taken: nobody else has looked at it. What does not fit is thrown as a sentence. */

export interface AgentAbout {
  readonly protocolVersion: number;
  readonly canLoad: boolean;
  readonly canResume: boolean;
  readonly takesSystem: boolean;
  readonly prompts: PromptCapabilities;
  /** How one logs in with it, by name. */
  readonly ways: readonly string[];
}

const longestId = 512;
const mostWays = 20;

export function readAbout(told: unknown): AgentAbout {
  const { protocolVersion, agentCapabilities, authMethods } = recordIn(told);
  if (typeof protocolVersion !== "number") throw new Error("it has no protocolVersion");
  const can = isRecord(agentCapabilities) ? agentCapabilities : {};
  const session = isRecord(can.sessionCapabilities) ? can.sessionCapabilities : {};
  const methods = Array.isArray(authMethods) ? authMethods.filter(isRecord) : [];
  return {
    protocolVersion,
    canLoad: can.loadSession === true,
    canResume: isRecord(session.resume),
    takesSystem: isRecord(session.systemPrompt),
    prompts: isRecord(can.promptCapabilities) ? can.promptCapabilities : {},
    ways: methods
      .map(({ name, id }) => name || id)
      .filter((way) => typeof way === "string")
      .slice(0, mostWays),
  };
}

/** Of a session that it has just begun. It is kept, shown, and told to a model. */
export function readSessionId(told: unknown): string {
  const { sessionId } = recordIn(told);
  if (typeof sessionId !== "string") throw new Error("it has no sessionId");
  const isName = sessionId !== "" && sessionId.length <= longestId && escapeToLine(sessionId) === sessionId;
  if (isName) return sessionId;
  const length = sessionId.length;
  throw new Error(`the id of its session is no name of 1 to ${longestId} printable characters (${length})`);
}

/** Options and modes that cannot be understood are as good as not offered. */
export function readSettings(told: unknown): OpenedSettings {
  const { configOptions, modes, models } = recordIn(told);
  return {
    configOptions: listIn("configOptions", configOptions).filter(isSelect),
    ...(isRecord(modes) && { modes: readModes(modes) }),
    models,
  };
}

function readModes({ availableModes, currentModeId }: Record<string, unknown>): SessionModeState {
  return {
    currentModeId: typeof currentModeId === "string" ? currentModeId : "",
    availableModes: listIn("availableModes", availableModes)
      .filter(isRecord)
      .flatMap(({ id, name }) =>
        typeof id === "string" ? [{ id, name: typeof name === "string" ? name : id }] : [],
      ),
  };
}

function isSelect(option: unknown): option is SessionConfigOption {
  if (!isRecord(option) || option.type !== "select" || !Array.isArray(option.options)) return false;
  if (typeof option.id !== "string" || typeof option.currentValue !== "string") return false;
  return option.options.every((each) =>
    isRecord(each) && Array.isArray(each.options) ? each.options.every(isChoice) : isChoice(each),
  );
}

function isChoice(each: unknown): boolean {
  return isRecord(each) && typeof each.value === "string" && typeof each.name === "string";
}

function recordIn(told: unknown): Record<string, unknown> {
  if (isRecord(told)) return told;
  throw new Error("it is no object");
}

function listIn(name: string, value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value;
  throw new Error(`its ${name} are no list`);
}
