import { rehearsalModel } from "../../../config/default-model.ts";
import { modelSettings, providerType } from "../../../config/model-settings.ts";
import type { Config } from "../../../config/sections/all.ts";
import type { SessionContext } from "../../../core/context.ts";
import { SkeinError } from "../../../core/errors.ts";
import { present } from "../../../core/present.ts";
import type { ContextPayload } from "../../../protocol/session-payloads.ts";
import { noBaseUrl } from "../../../runtimes/models/open-model.ts";
import { contextView } from "../../../sessions/context-view.ts";
import type { OfferedTools } from "../../../sessions/skein/skein.ts";
import type { XrayOptions } from "../../../sessions/xray.ts";
import { ownModel } from "../../../sessions/xray.ts";
import type { ModelRef } from "../../../transcript/parse-model.ts";
import { parseModel } from "../../../transcript/parse-model.ts";
import { apiOf } from "../../../transcript/policy.ts";
import type { FolderDeps } from "../../calls/contract.ts";

/** A context, and what the configuration says of requests that are made of it. */
export interface Looked {
  readonly context: SessionContext;
  readonly config: Config;
  readonly known: Omit<XrayOptions, "tools"> & { readonly offered?: OfferedTools };
  /** The model of the session's agent, where one is configured. */
  readonly agentModel: string | null;
}

export interface ContextAsked {
  /** `provider/model`; left out: the session's own, else its agent's. */
  readonly model?: string;
  readonly baseUrl?: string;
  readonly wire?: boolean;
}

/** What a model would be sent. Where none is known, the context as it is. */
export async function seeContext(
  { context, config, known, agentModel }: Looked,
  { model: name, baseUrl, wire = false }: ContextAsked,
  contextForModel: FolderDeps["contextForModel"],
): Promise<ContextPayload> {
  const named = name === undefined ? null : parseModel(name);
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
  if (!wire) return contextView(context);
  throw noModel();
}

export function noModel(): SkeinError {
  return new SkeinError("invalid_arguments", {
    problem: "The session names no model",
    advice: "Give model, as provider/model (on the command line: --model <provider/model>)",
  });
}

/** A model that is typed, here or in the configuration, must be one that could be asked: a slip of the pen would be taken for a server. */
function checkReachable({ provider, model }: ModelRef, config: Config, given: string | undefined): void {
  if (`${provider}/${model}` === rehearsalModel) return;
  const { type, baseUrl } = modelSettings(config.models, provider, model);
  if (type !== "openai-compatible" || baseUrl !== null || given !== undefined) return;
  throw noBaseUrl(
    provider,
    `: baseUrl (on the command line: --base-url <url>), or models.providers.${provider}.baseUrl`,
  );
}

/** How old results of tools make room, as the configuration says. */
export function pruningBy({ contextPruning }: Config, now: number): NonNullable<XrayOptions["pruning"]> {
  const { mode, ttl, tools } = contextPruning;
  const allow = tools.allow.length === 0 ? undefined : tools.allow;
  return { mode, ttlMs: ttl, lastCallAt: null, now, ...present({ allow }), deny: tools.deny };
}
