import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { escapeUnprintable } from "../core/text.ts";
import { noModel, pruningOptions, viewContext } from "../gateway/methods/sessions-context.ts";
import type { ContextPayload } from "../protocol/session-views.ts";
import { previewOfMessage } from "../sessions/tree-view.ts";
import { readSessionFile } from "../store/files/lone-file.ts";
import { parseModel } from "../transcript/model-table.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, refHelp } from "./command.ts";
import { isFileName, refuseForFile, resolveEntry, resolveRef } from "./connection/resolve-session.ts";
import { withCalls } from "./connection/with-calls.ts";
import { loadSettings } from "./connection/with-folder.ts";
import { printFindings, printPayload } from "./output/answer.ts";
import { formatCount, pluralize } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, pad, paint, pathFrom, wholeLine } from "./output/terminal.ts";

export function registerContext(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", refHelp)
    .option("--model <provider/model>", "show the request for this model (default: the session's model)")
    .option(
      "--base-url <url>",
      "the URL of an OpenAI-compatible server for a provider that is not configured",
    )
    .option(
      "--entry <entryId>",
      "show the request for this answer (its ID, or the last characters if they are unique)",
    )
    .option("--explain", "list every change made to the messages for this model")
    .option("--wire", "print the request body as the provider would receive it")
    .addHelpText(
      "after",
      examples(
        "skein context trip",
        "skein context trip --entry 3d5aea03",
        "skein context trip --model openai/gpt-5 --explain",
        "skein context trip --model google/gemini-2.5-pro --wire",
        "skein context ./trip.jsonl --model local/qwen3 --base-url http://127.0.0.1:11434/v1 --json",
      ),
    )
    .action(action(context, showContext));
}

interface ContextCommandOptions {
  readonly model?: string;
  readonly baseUrl?: string;
  readonly entry?: string;
  readonly explain?: boolean;
  readonly wire?: boolean;
}

async function showContext(cli: Invocation<ContextCommandOptions>, name: string): Promise<void> {
  const { terminal, options } = cli;
  if (options.model !== undefined) parseModel(options.model);
  checkAddress(options.baseUrl);
  const { explain = false, wire = false } = options;
  const view = await (isFileName(name) ? contextOfFile : contextOfSession)(cli, name);
  if (explain && view.request.api === undefined) throw noModel();
  printPayload(cli, view, () => {
    if (explain || !wire) printContext(terminal, view, explain);
    if (wire) printWire(terminal, view.wire, explain);
    const next = commandLine(cli, "context", name, "--model", "anthropic/claude-sonnet-4-5");
    if (view.request.api === undefined)
      printHint(terminal, `The session has no model. To show the request for one: ${next}`);
    if (wire) return;
    if (view.changes.some(({ kind }) => kind === "tools_unknown"))
      printHint(
        terminal,
        "Tools are not included, because a file has no agent; a run would offer its agent's tools.",
      );
    const { toolsUnlisted = [] } = view.request;
    if (toolsUnlisted.length > 0) printHint(terminal, unlistedText(toolsUnlisted));
  });
}

/** MCP servers are not started for this command, so their tools are not listed. */
function unlistedText(servers: readonly string[]): string {
  return `The count does not include tools from ${servers.join(", ")}, because this command does not start MCP servers; a run does.`;
}

/** Applies the same rule as `baseUrl` in the configuration. */
function checkAddress(url: string | undefined): void {
  if (url === undefined || (/^https?:\/\/[^\s/]\S*$/.test(url) && URL.canParse(url))) return;
  throw new SkeinError("invalid_arguments", {
    problem: `"${url}" is not a valid server URL`,
    advice: "Set --base-url to a URL that starts with http:// or https://",
  });
}

function contextOfSession(cli: Invocation<ContextCommandOptions>, name: string): Promise<ContextPayload> {
  const { model, baseUrl, entry, wire } = cli.options;
  return withCalls(cli, async (open) => {
    const { key } = await resolveRef(open, name);
    const session = { key, ...open.reader };
    const entryId = entry === undefined ? null : await resolveEntry(open, session, entry);
    return open.calls.call("sessions.context", { ...session, ...present({ model, baseUrl, entryId, wire }) });
  });
}

/** A single file has no blobs and no agent. */
async function contextOfFile(cli: Invocation<ContextCommandOptions>, name: string): Promise<ContextPayload> {
  refuseForFile({ "--entry": cli.options.entry });
  const context = (await readSessionFile(pathFrom(cli.terminal, name))).context();
  const { config } = await loadSettings(cli);
  const known = { pruning: pruningOptions(config, cli.terminal.now()) };
  return viewContext({ context, config, known }, cli.options);
}

function printHint(terminal: Terminal, text: string): void {
  terminal.out(`\n${paint(terminal, "dim", oneLine(text, 2000))}\n`);
}

const titleWidth = 10;
const barWidth = 30;
const mostChanges = 200;
/** Longer than a terminal line, so that notes are not truncated. */
const longestNote = 1000;

function printContext(terminal: Terminal, view: ContextPayload, explain: boolean): void {
  const { provider, model, api, thinkingLevel, system, messages, tools } = view.request;
  const wire = api === undefined ? "" : ` (${api})`;
  const changes = view.changes.length;
  row(terminal, "model", model === undefined ? "unknown" : `${provider}/${model}${wire}`);
  row(terminal, "thinking", thinkingLevel);
  if (system !== undefined) row(terminal, "system", system);
  // Names are not truncated because other commands accept them as arguments.
  if (tools !== undefined)
    terminal.out(`${paint(terminal, "bold", pad("tools", titleWidth))}${wholeLine(toolsText(tools))}\n`);
  row(terminal, "messages", String(messages.length));
  if (api !== undefined) row(terminal, "changes", changesText(changes, explain));
  printTokens(terminal, view.tokens);
  if (messages.length > 0) terminal.out("\n");
  const width = String(messages.length).length;
  for (const [index, message] of messages.entries()) {
    const place = String(index + 1).padStart(width);
    const role = pad(oneLine(message.role, 12), 12);
    const preview = oneLine(previewOfMessage(message), terminal.columns - width - 15);
    terminal.out(`${paint(terminal, "dim", place)} ${role} ${preview}\n`);
  }
  if (explain) printChanges(terminal, view.changes);
  printFindings(terminal, view.diagnostics);
}

function toolsText(tools: readonly { readonly name: string }[]): string {
  return tools.length === 0 ? "none" : `${tools.length}: ${tools.map(({ name }) => name).join(", ")}`;
}

function changesText(count: number, explain: boolean): string {
  if (count === 0) return "none";
  return explain ? String(count) : `${count}; use --explain to list them`;
}

function row(terminal: Terminal, title: string, value: string): void {
  const shown = oneLine(value, terminal.columns - titleWidth);
  terminal.out(`${paint(terminal, "bold", pad(title, titleWidth))}${shown}\n`);
}

const partNames = {
  system: "system",
  tools: "tools",
  summary: "summary",
  user: "user",
  assistant: "assistant",
  thinking: "thinking",
  toolCalls: "tool calls",
  toolResults: "tool results",
  images: "images",
} as const;

/** Prints a bar for each part that is not empty. */
function printTokens(terminal: Terminal, tokens: ContextPayload["tokens"]): void {
  const { total, window } = tokens;
  const share = window === undefined ? "" : ` of ${formatCount(window)} (${percent(total, window)})`;
  row(terminal, "tokens", `about ${formatCount(total)}${share}`);
  if (window !== undefined && total > window)
    row(terminal, "", "exceeds the context window; a run would compact the session first");
  const rows = Object.entries(partNames)
    .map(([part, name]) => ({ name, count: tokens[part as keyof typeof partNames] ?? 0 }))
    .filter(({ count }) => count > 0);
  const widths = rows.map(({ count }) => formatCount(count).length);
  const width = Math.max(0, ...widths);
  for (const { name, count } of rows) {
    const bar = "█".repeat(Math.max(1, Math.round((barWidth * count) / total)));
    const text = `${pad(name, 14)}${formatCount(count).padStart(width)}  ${bar}`;
    terminal.out(`${" ".repeat(titleWidth)}${oneLineOfParts(text, terminal.columns - titleWidth)}\n`);
  }
}

/** The text needs no escaping, and its spaces must be kept. */
function oneLineOfParts(text: string, columns: number): string {
  return text.slice(0, Math.max(0, columns));
}

function percent(part: number, whole: number): string {
  const value = whole === 0 ? 0 : (100 * part) / whole;
  return value > 0 && value < 1 ? "<1%" : `${Math.round(value)}%`;
}

function printChanges(terminal: Terminal, changes: ContextPayload["changes"]): void {
  let step = "";
  for (const change of changes.slice(0, mostChanges)) {
    if (change.step !== step) {
      step = change.step;
      terminal.out(`\n${paint(terminal, "bold", oneLine(step, terminal.columns))}\n`);
    }
    const where = change.entryId === undefined ? "" : `…${change.entryId.slice(-8)} `;
    const text = `${where}${change.kind}: ${change.note}`;
    terminal.out(`  ${oneLine(text, longestNote)}\n`);
  }
  const left = changes.length - mostChanges;
  if (left > 0) terminal.out(`  and ${pluralize(left, "more change")}; use --json to show them all\n`);
}

function printWire(terminal: Terminal, body: unknown, below: boolean): void {
  if (below) terminal.out(`\n${paint(terminal, "bold", "wire")}\n`);
  terminal.out(`${escapeUnprintable(JSON.stringify(body, null, 2))}\n`);
}
