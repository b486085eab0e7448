import type {
  AvailableCommand,
  ListSessionsRequest,
  ListSessionsResponse,
  SessionConfigOption,
  SessionConfigSelectOption,
  SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import { readThinkingLevel, thinkingLevels } from "../../core/thinking-levels.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { SessionDetailsPayload } from "../../protocol/session-details.ts";
import type { SessionRow } from "../../protocol/session-list.ts";
import type { ServerContext } from "./context.ts";

/** Session data for an editor other than the messages: the list, options, commands and usage. */

const pageSize = 50;
/** The page size used after a page without sessions in the folder. This is the maximum for `sessions.list`. */
const searchPageSize = 1000;
const maxTitleChars = 80;

/**
 * Lists the sessions that a person would continue, leaving out those started by other sessions, hooks and schedules.
 * Aborting the signal stops the search for a page with sessions in the folder.
 */
export async function listSessions(
  { calls, scope, cwd: serverFolder }: ServerContext,
  { cwd: folder = null, cursor = null }: ListSessionsRequest,
  signal: AbortSignal,
): Promise<ListSessionsResponse> {
  let limit = pageSize;
  for (let at = cursor; ; limit = searchPageSize) {
    const kinds: Params<"sessions.list">["kinds"] = ["main", "group", "other"];
    const params = { ...scope, kinds, limit, includeDetails: true, ...present({ cursor: at ?? undefined }) };
    const page = await calls.call("sessions.list", params, { signal });
    const { sessions: rows, nextCursor = null } = page;
    const sessions = rows
      // Only admins can see the folders of sessions. A session without a visible folder is always included.
      .filter(({ spawnedBy, cwd = folder ?? serverFolder }) => {
        return spawnedBy === undefined && (folder === null || isSameFolder(cwd, folder));
      })
      .map((row) => ({
        sessionId: row.key,
        cwd: row.cwd ?? folder ?? serverFolder,
        title: titleOf(row),
        updatedAt: new Date(row.updatedAt).toISOString(),
      }));
    // Some editors treat an empty page as the end of the list.
    if (sessions.length > 0 || nextCursor === null) return { sessions, nextCursor };
    at = nextCursor;
  }
}

function isSameFolder(a: string, b: string): boolean {
  return trimSlashes(a) === trimSlashes(b);
}

function trimSlashes(path: string): string {
  return path.length > 1 ? path.replace(/[/\\]+$/, "") : path;
}

export function titleOf({
  displayName,
  label,
  summary,
  key,
}: Pick<SessionRow, "displayName" | "label" | "summary" | "key">): string {
  const title = escapeToLine((displayName ?? label ?? summary ?? key).replace(/\s+/g, " ").trim());
  return title.length > maxTitleChars ? `${cutText(title, maxTitleChars)}…` : title;
}

/** The option value that selects the agent's default. */
const defaultValue = "default";

/** Returns the session's model and thinking level as options. Empty if the token is not allowed to change them. */
export async function configOptions(
  { calls, canCall }: ServerContext,
  { agentId, model, thinkingLevel }: SessionDetailsPayload,
): Promise<SessionConfigOption[]> {
  if (!canCall("sessions.patch")) return [];
  const { models } = await calls.call("models.list", {});
  const agentModel = models.find((each) => each.agents.includes(agentId))?.model;
  const ownModel = agentModel === undefined ? "The agent's default" : `The agent's default (${agentModel})`;
  return [
    selectOption("model", "Model", model, [
      { value: defaultValue, name: ownModel },
      ...models.map((each) => ({ value: each.model, name: each.model })),
    ]),
    selectOption("thought_level", "Thinking", thinkingLevel, [
      { value: defaultValue, name: "The agent's default" },
      ...thinkingLevels.map((level) => ({ value: level, name: level })),
    ]),
  ];
}

/** Adds the current value, such as a model that was set manually, if the list does not contain it. */
function selectOption(
  id: "model" | "thought_level",
  name: string,
  currentValue = defaultValue,
  known: SessionConfigSelectOption[],
): SessionConfigOption {
  const isKnown = known.some(({ value }) => value === currentValue);
  const options = isKnown ? known : [...known, { value: currentValue, name: currentValue }];
  return { type: "select", id, name, category: id, currentValue, options };
}

/** Converts a chosen option into params for `sessions.patch`. */
export function patchOf(
  configId: string,
  value: unknown,
): Pick<Params<"sessions.patch">, "model" | "thinkingLevel"> {
  if (typeof value !== "string")
    throw invalidOption(`${configId} does not accept a value of type ${typeof value}`);
  const chosen = value === defaultValue ? null : value;
  if (configId === "model") return { model: chosen };
  if (configId !== "thought_level") throw invalidOption(`There is no option "${configId}"`);
  const level = readThinkingLevel(chosen);
  if (level !== chosen) throw invalidOption(`There is no thinking level "${value}"`);
  return { thinkingLevel: level };
}

function invalidOption(problem: string): SkeinError {
  const advice = "Use one of the options that the session was opened with";
  return new SkeinError("invalid_arguments", { problem, advice });
}

export function commandsUpdate({ commands }: ServerContext): SessionUpdate {
  const availableCommands = commands.map(
    ({ name, about, hint }): AvailableCommand => ({
      name,
      description: about,
      ...(hint !== null && { input: { hint } }),
    }),
  );
  return { sessionUpdate: "available_commands_update", availableCommands };
}

/** Reports how full the context is. Returns `null` if its size or the context window is unknown. */
export async function usageUpdate(
  { calls }: ServerContext,
  { contextTokens, model, agentId, estimatedCostUsd }: SessionDetailsPayload,
): Promise<SessionUpdate | null> {
  if (contextTokens === undefined) return null;
  const { models } = await calls.call("models.list", {});
  const used =
    models.find((each) => each.model === model) ?? models.find((each) => each.agents.includes(agentId));
  if (used?.contextWindow === undefined) return null;
  const cost = estimatedCostUsd === undefined ? null : { amount: estimatedCostUsd, currency: "USD" };
  return { sessionUpdate: "usage_update", used: contextTokens, size: used.contextWindow, cost };
}

/** Describes the parts of a request to open a session that were ignored. Returns `null` if there are none. */
export function ignoredText(
  { canCall }: ServerContext,
  request: { readonly mcpServers?: readonly unknown[]; readonly cwd: string },
  /** The session's folder. `null` for a new session, `undefined` if this token is not allowed to see it. */
  sessionFolder: string | null | undefined,
): string | null {
  const texts: string[] = [];
  if ((request.mcpServers ?? []).length > 0)
    texts.push(
      "The editor's MCP servers are not started, because Skein's agents use the tools in Skein's own configuration (mcpServers).",
    );
  if (sessionFolder === null && !canCall("sessions.patch"))
    texts.push(
      `The session does not run in ${request.cwd}, because only an admin token can choose a folder. The agent's own folder is used instead.`,
    );
  if (typeof sessionFolder === "string" && !isSameFolder(sessionFolder, request.cwd))
    texts.push(`The session runs in ${sessionFolder}, where it was started, not in ${request.cwd}.`);
  return texts.length === 0 ? null : texts.join("\n");
}
