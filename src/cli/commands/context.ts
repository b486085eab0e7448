import { contextForModel, readSessionFile } from "../../app/folder.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { noModel, pruningBy, seeContext } from "../../gateway/methods/sessions-context.ts";
import type { ContextPayload } from "../../protocol/session-payloads.ts";
import { parseModel } from "../../transcript/parse-model.ts";
import { isFileName, resolveRef } from "../connection/resolve-session.ts";
import { withCalls } from "../connection/with-calls.ts";
import { loadSettings } from "../connection/with-folder.ts";
import { printContext, printWire } from "../output/context-report.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { commandLine } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, pathFrom, printJson } from "../output/terminal.ts";

export interface ContextCommandOptions extends GlobalOptions {
  readonly model?: string;
  readonly baseUrl?: string;
  readonly explain?: boolean;
  readonly wire?: boolean;
}

/** Prints what a model would be sent from where the session stands. */
export async function showContext(
  terminal: Terminal,
  name: string,
  options: ContextCommandOptions,
): Promise<void> {
  if (options.model !== undefined) parseModel(options.model);
  checkAddress(options.baseUrl);
  const { explain = false, wire = false } = options;
  const view = await (isFileName(name) ? contextOfFile : contextOfSession)(terminal, name, options);
  if (explain && view.request.api === undefined) throw noModel();
  if (options.json === true) {
    printJson(terminal, view);
    return;
  }
  if (explain || !wire) printContext(terminal, view, explain);
  if (wire) printWire(terminal, view.wire, explain);
  if (view.request.api === undefined) hint(terminal, name, options);
  const isUnknown = view.changes.some(({ kind }) => kind === "tools_unknown");
  if (isUnknown && !wire)
    dim(terminal, "The tools are not known here; a run would offer those of its agent.");
  const { toolsUnlisted = [] } = view.request;
  if (toolsUnlisted.length > 0 && !wire) dim(terminal, unlistedText(toolsUnlisted));
}

/** Looking starts nothing. */
function unlistedText(servers: readonly string[]): string {
  return `Not counted are the tools of ${servers.join(", ")}: to tell them it would have to be started, as a run does.`;
}

/** As the configuration has it. */
function checkAddress(url: string | undefined): void {
  if (url === undefined || (/^https?:\/\/[^\s/]\S*$/.test(url) && URL.canParse(url))) return;
  throw new SkeinError("invalid_arguments", {
    problem: `"${url}" is no address of a server`,
    advice: "--base-url takes one that begins with http:// or https://",
  });
}

function contextOfSession(
  terminal: Terminal,
  name: string,
  options: ContextCommandOptions,
): Promise<ContextPayload> {
  const { model, baseUrl, wire } = options;
  return withCalls(terminal, options, async (open) => {
    const { key } = await resolveRef(open, name);
    return open.calls.call("sessions.context", { key, ...present({ model, baseUrl, wire }), ...open.reader });
  });
}

/** Blobs and an agent belong to a session in a folder; of a lone file they are not known. */
async function contextOfFile(
  terminal: Terminal,
  name: string,
  options: ContextCommandOptions,
): Promise<ContextPayload> {
  const context = (await readSessionFile(pathFrom(terminal, name))).context();
  const { config } = await loadSettings(terminal, options);
  const known = { pruning: pruningBy(config, terminal.now()) };
  return seeContext({ context, config, known }, options, contextForModel);
}

function hint(terminal: Terminal, name: string, options: ContextCommandOptions): void {
  const next = commandLine(terminal, options, ["context", name, "--model", "anthropic/claude-sonnet-4-5"]);
  dim(terminal, `No model is known; what one would be sent: ${next}`);
}

function dim(terminal: Terminal, text: string): void {
  terminal.out(`\n${paint(terminal, "dim", oneLine(text, 2000))}\n`);
}
