import { contextForModel } from "../../compose.ts";
import { modelSettings, providerType } from "../../config/model-settings.ts";
import type { Config } from "../../config/sections/all.ts";
import { SkeinError } from "../../core/errors.ts";
import type { ContextPayload } from "../../protocol/session-payloads.ts";
import { noBaseUrl } from "../../runtimes/models/open-model.ts";
import { contextView } from "../../sessions/context-view.ts";
import { ownModel } from "../../sessions/xray.ts";
import type { ModelRef } from "../../transcript/parse-model.ts";
import { parseModel } from "../../transcript/parse-model.ts";
import { apiOf } from "../../transcript/policy.ts";
import type { Looked } from "../folder/with-context.ts";
import { withContext } from "../folder/with-context.ts";
import { printContext, printWire } from "../output/context-report.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { commandLine } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, printJson } from "../output/terminal.ts";

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
  const named = options.model === undefined ? null : parseModel(options.model);
  checkAddress(options.baseUrl);
  const view = await withContext(terminal, name, options, (looked) => viewOf(looked, named, options));
  if (options.json === true) {
    printJson(terminal, view);
    return;
  }
  const { explain = false, wire = false } = options;
  if (explain || !wire) printContext(terminal, view, explain);
  if (wire) printWire(terminal, view.wire, explain);
  if (view.request.api === undefined) hint(terminal, name, options);
  const isUnknown = view.changes.some(({ kind }) => kind === "tools_unknown");
  if (isUnknown && !wire)
    dim(terminal, "The tools are not known here; a run would offer those of its agent.");
}

/** As the configuration has it. */
function checkAddress(url: string | undefined): void {
  if (url === undefined || (/^https?:\/\/[^\s/]\S*$/.test(url) && URL.canParse(url))) return;
  throw new SkeinError("invalid_arguments", {
    problem: `"${url}" is no address of a server`,
    advice: "--base-url takes one that begins with http:// or https://",
  });
}

async function viewOf(
  { context, config, known, agentModel }: Looked,
  named: ModelRef | null,
  { explain = false, wire = false, baseUrl }: ContextCommandOptions,
): Promise<ContextPayload> {
  const own = named === null ? ownModel(context) : null;
  const typed = named ?? (own === null && agentModel !== null ? parseModel(agentModel) : null);
  if (typed !== null) checkReachable(typed, config, baseUrl);
  const model = own ?? typed;
  if (model !== null) {
    const settings = modelSettings(config.models, model.provider, model.model);
    const isOther = settings.type === "openai-compatible" && providerType(model.provider) === settings.type;
    const api = model.api ?? settings.api ?? apiOf(isOther ? model.provider : settings.type);
    return contextForModel(context, { ...model, api }, { ...known, settings, wire });
  }
  if (!explain && !wire) return contextView(context);
  throw new SkeinError("invalid_arguments", {
    problem: "The session names no model",
    advice: "Say for which one with --model <provider/model>",
  });
}

/** A model that is typed, here or in the configuration, must be one that could be asked: a slip of the pen would be taken for a server. */
function checkReachable({ provider, model }: ModelRef, config: Config, given: string | undefined): void {
  const { type, baseUrl } = modelSettings(config.models, provider, model);
  if (type !== "openai-compatible" || baseUrl !== null || given !== undefined) return;
  throw noBaseUrl(provider, `: --base-url <url>, or models.providers.${provider}.baseUrl`);
}

function hint(terminal: Terminal, name: string, options: ContextCommandOptions): void {
  const next = commandLine(terminal, options, ["context", name, "--model", "anthropic/claude-sonnet-4-5"]);
  dim(terminal, `No model is known; what one would be sent: ${next}`);
}

function dim(terminal: Terminal, text: string): void {
  terminal.out(`\n${paint(terminal, "dim", oneLine(text, 2000))}\n`);
}
