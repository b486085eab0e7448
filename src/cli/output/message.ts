import { stringifyJson } from "../../core/json.ts";
import { isRecord } from "../../core/shape.ts";
import { escapeUnprintable } from "../../core/text.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, paint } from "./terminal.ts";

const roleColors = new Map<string, "cyan" | "green" | "magenta">([
  ["user", "cyan"],
  ["assistant", "green"],
  ["toolResult", "magenta"],
  ["bashExecution", "magenta"],
]);

export interface ShownMessage {
  id: string;
  role: string;
  timestamp?: unknown;
  content?: unknown;
  summary?: unknown;
  command?: unknown;
  output?: unknown;
  toolName?: unknown;
  isError?: unknown;
  errorMessage?: unknown;
  provenance?: unknown;
}

/** Who spoke and when, and below it what was said. */
export function printMessage(terminal: Terminal, message: ShownMessage): void {
  const color = roleColors.get(message.role) ?? "yellow";
  const time = typeof message.timestamp === "number" ? new Date(message.timestamp) : null;
  const stamp =
    time === null || Number.isNaN(time.getTime()) ? "" : time.toISOString().slice(0, 19).replace("T", " ");
  const failed = message.isError === true ? " (failed)" : "";
  const tool = typeof message.toolName === "string" ? ` ${message.toolName}${failed}` : "";
  const head = oneLine(`${message.role}${tool}${writerOf(message)}`, 120);
  terminal.out(
    `\n${paint(terminal, color, head)}  ${paint(terminal, "dim", oneLine(`${stamp}  ${message.id}`, 80))}\n`,
  );
  for (const text of textsOf(message)) terminal.out(`${indent(escapeUnprintable(text))}\n`);
}

/** Who wrote it, where that is neither the user of the session nor its agent. */
function writerOf({ provenance }: ShownMessage): string {
  if (!isRecord(provenance)) return "";
  const { sourcePeerName, sourcePeer, sourceSessionKey } = provenance;
  const writer = [sourcePeerName, sourcePeer, sourceSessionKey].find((each) => typeof each === "string");
  return writer === undefined ? "" : ` from ${writer}`;
}

function textsOf(message: ShownMessage): string[] {
  const { summary, command, output, content, errorMessage } = message;
  const texts = [summary, command, output, content].filter((each) => typeof each === "string");
  const blocks = Array.isArray(content) ? content.map(blockText) : [];
  const error = typeof errorMessage === "string" ? [`error: ${errorMessage}`] : [];
  return texts.concat(blocks, error).filter((text) => text.trim() !== "");
}

function blockText(block: unknown): string {
  if (!isRecord(block)) return "";
  switch (block.type) {
    case "text":
      return typeof block.text === "string" ? block.text : "";
    case "thinking":
      return typeof block.thinking === "string" ? `(thinking) ${block.thinking}` : "";
    case "toolCall":
      return `→ ${typeof block.name === "string" ? block.name : "?"} ${stringifyJson(block.arguments)}`;
    default:
      return `[${typeof block.type === "string" ? block.type : "block"}]`;
  }
}

function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}
