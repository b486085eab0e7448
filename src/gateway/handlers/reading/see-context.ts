import { checkReachable, modelApi } from "../../../agents/models/open-model.ts";
import { modelSettings } from "../../../config/model-settings.ts";
import type { Config } from "../../../config/sections/all.ts";
import type { SessionContext } from "../../../core/context.ts";
import { SkeinError } from "../../../core/errors.ts";
import { present } from "../../../core/present.ts";
import type { ContextPayload } from "../../../protocol/session-payloads.ts";
import type { XrayOptions } from "../../../sessions/xray.ts";
import { contextView, ownModel } from "../../../sessions/xray.ts";
import { parseModel } from "../../../transcript/parse-model.ts";
import type { FolderDeps } from "../../calls/contract.ts";

/** A context, and what the configuration says of requests that are made of it. */
export interface Looked {
  readonly context: SessionContext;
  readonly config: Config;
  readonly known: Omit<XrayOptions, "tools">;
}

export interface ContextAsked {
  /** `provider/model`; left out: the session's own. */
  readonly model?: string;
  readonly baseUrl?: string;
  readonly wire?: boolean;
}

/**
 * Shows what a model would be sent from a lone file, or from a session whose agent is not known. Without a model, shows
 * the context as it is.
 */
export async function seeContext(
  { context, config, known }: Looked,
  { model: name, baseUrl, wire = false }: ContextAsked,
  contextForModel: FolderDeps["contextForModel"],
): Promise<ContextPayload> {
  const named = name === undefined ? null : parseModel(name);
  if (named !== null) checkReachable(named, config.models, baseUrl);
  const model = named ?? ownModel(context);
  if (model !== null) {
    const settings = modelSettings(config.models, model.provider, model.model);
    const api = modelApi(model, settings);
    return contextForModel(context, { ...model, api }, { ...known, settings, wire });
  }
  if (!wire) return contextView(context);
  throw noModel();
}

export function noModel(): SkeinError {
  return new SkeinError("invalid_arguments", {
    problem: "The session names no model",
    advice: "Give model, as provider/model (on the command line: --model <provider/model>)",
  });
}

/** How old results of tools make room, as the configuration says. */
export function pruningBy({ contextPruning }: Config, now: number): NonNullable<XrayOptions["pruning"]> {
  const { mode, ttl, tools } = contextPruning;
  const allow = tools.allow.length === 0 ? undefined : tools.allow;
  return { mode, ttlMs: ttl, lastCallAt: null, now, ...present({ allow }), deny: tools.deny };
}
