import type { AvailableCommand, SessionModeState, SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import type { SessionDetailsPayload } from "../../protocol/session-details.ts";
import type { AcpParts } from "./contract.ts";
import { isSameFolder } from "./listing.ts";
import type { Permissions } from "./permissions.ts";
import { modes } from "./permissions.ts";

/** What an editor is told of a session beside what was said in it. */

export function modeState({ mode }: Permissions): SessionModeState {
  return { currentModeId: mode, availableModes: modes.map((each) => ({ ...each })) };
}

export function commandsUpdate({ commands }: AcpParts): SessionUpdate {
  const availableCommands = commands.map(
    ({ name, about, hint }): AvailableCommand => ({
      name,
      description: about,
      ...(hint === null ? {} : { input: { hint } }),
    }),
  );
  return { sessionUpdate: "available_commands_update", availableCommands };
}

/** How full its context is, where both figures are known. */
export async function usageUpdate(
  { calls }: AcpParts,
  { contextTokens, model, agentId, estimatedCostUsd }: SessionDetailsPayload,
): Promise<SessionUpdate | null> {
  if (contextTokens === undefined) return null;
  const { models } = await calls.call("models.list", {});
  const asked =
    models.find((each) => each.model === model) ?? models.find((each) => each.agents.includes(agentId));
  if (asked?.contextWindow === undefined) return null;
  const cost = estimatedCostUsd === undefined ? null : { amount: estimatedCostUsd, currency: "USD" };
  return { sessionUpdate: "usage_update", used: contextTokens, size: asked.contextWindow, cost };
}

/** What was asked for and is not done: it is told, never passed over. */
export function notDone(
  parts: AcpParts,
  asked: {
    readonly mcpServers?: readonly unknown[];
    readonly cwd: string;
    readonly isNew: boolean;
    /** Where the session works; left out: that is not told to us. */
    readonly at: string | undefined;
  },
): string | null {
  const servers = (asked.mcpServers ?? []).length;
  const texts = [
    servers === 0
      ? null
      : "The editor's MCP servers are not started: Skein's agents have the tools of Skein's own configuration (mcpServers).",
    !asked.isNew || parts.may("sessions.patch")
      ? null
      : `The session does not work in ${asked.cwd}: only an admin token may choose a folder, and the agent's own is used.`,
    asked.isNew || asked.at === undefined || isSameFolder(asked.at, asked.cwd)
      ? null
      : `The session works in ${asked.at}, where it was begun, and not in ${asked.cwd}.`,
  ].filter((text) => text !== null);
  return texts.length === 0 ? null : texts.join("\n");
}
