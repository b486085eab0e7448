import type { ToolKind } from "@agentclientprotocol/sdk/unstable";
import { isAcpKey } from "../../core/keys.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { ToolCalls } from "./tool-calls.ts";
import { toolKind, toolTitle } from "./tool-shapes.ts";

/** Calls that are asked about, as an editor is shown them. Pure. */

/** A tool call that waits for approval, as events and lists show it. */
export interface Asked {
  readonly approvalId: string;
  readonly runId?: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The spawned session that asks; without: the one that is open. */
  readonly asker?: Asker;
}

export interface Asker {
  readonly key: string;
  readonly label?: string;
}

export interface CallShape {
  readonly toolCallId: string;
  readonly title: string;
  readonly name: string;
  readonly kind: ToolKind;
  readonly status: "pending";
  readonly rawInput: Readonly<Record<string, unknown>>;
}

const longestTitle = 120;

/** Of the session itself, whose calls the editor knows by ids of its own. */
export function ownCall(asked: Asked, tools: Pick<ToolCalls, "idOf">): CallShape {
  const title = toolTitle(asked.toolName, asked.arguments);
  return { toolCallId: tools.idOf(asked.toolCallId), title, ...shapeOf(asked) };
}

/**
 * Of a session that it spawned, by whose name the title begins. The id is the question's: models use those of calls twice, and
 * other sessions use the same.
 */
export function spawnedCall(asked: Asked, asker: Asker): CallShape {
  const toolCallId = `${asker.key}/${asked.approvalId}`;
  const name = escapeToLine(cutText(asker.label ?? asker.key, longestTitle));
  return { toolCallId, title: `${name}: ${titleOf(asked, asker)}`, ...shapeOf(asked) };
}

/** Somebody else's agent puts its question into words itself; the tool's name is then but a kind. */
function titleOf({ toolName, arguments: args }: Asked, { key }: Asker): string {
  const { title } = args;
  if (!isAcpKey(key) || typeof title !== "string" || title.trim() === "") return toolTitle(toolName, args);
  return toolTitle(title, {});
}

function shapeOf({ toolName, arguments: args }: Asked): Omit<CallShape, "toolCallId" | "title"> {
  return { name: toolName, kind: toolKind(toolName), status: "pending", rawInput: args };
}
