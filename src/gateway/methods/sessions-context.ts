import { checkReachable, modelApi } from "../../agents/models/open-model.ts";
import { modelSettings } from "../../config/model-settings.ts";
import type { Config } from "../../config/sections/all.ts";
import type { SessionContext } from "../../core/context.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Steps } from "../../core/slices.ts";
import { Slices } from "../../core/slices.ts";
import type { Result } from "../../protocol/method-table.ts";
import type { ContextPayload } from "../../protocol/session-views.ts";
import type { AnsweredRequest } from "../../sessions/answered-request.ts";
import { readAnsweredRequest } from "../../sessions/answered-request.ts";
import type { ShownAs } from "../../sessions/show-request.ts";
import type { RequestOptions, XrayOptions } from "../../sessions/xray.ts";
import { contextForModel, contextView, ownModel } from "../../sessions/xray.ts";
import type { SessionRecord } from "../../store/contract.ts";
import { noSuchSession, scopeOfSession } from "../../store/rules.ts";
import type { ModelRef } from "../../transcript/model-table.ts";
import { parseModel } from "../../transcript/model-table.ts";
import { sessionHistoryLimit } from "../../transcript/steps/limit-history.ts";
import type { Mask } from "../auth/mask.ts";
import { maskFor } from "../auth/mask.ts";
import type { Call, FolderApp, HandlersOf } from "./dispatch.ts";
import { findSession, scopeOf } from "./session-lookup.ts";
import { contentBytes } from "./sessions-export.ts";

/** Masking a message takes at least as long as reading this many bytes. */
const messageBytes = 1024;

/** Methods that return the X-ray of a session. */
export function contextHandlers(app: FolderApp): HandlersOf<"sessions.context"> {
  return {
    "sessions.context": async (params, call) => {
      const { model, baseUrl, wire, entryId } = params;
      const session = await findSession(app, call, params);
      const options = present({ model, baseUrl, wire });
      const answer =
        entryId === undefined ? null : await readAnsweredRequest(app.store, scopeOf(call), session, entryId);
      const context = await contextInFrame(app, call, session, answer);
      const { showRequest } = await import("../../sessions/show-request.ts");
      const mask = maskFor(app, call);
      const viewText = mask.isOff ? undefined : (text: string) => mask.text(text);
      const seen =
        (await showRequest(app, session, options, { answer, viewText })) ??
        (await viewContext(lookAt(app, session, context, { answer, viewText }), options));
      const shown = await new Slices(call.signal).run(masked(seen, mask));
      return shown as Result<"sessions.context">;
    },
  };
}

/** Throws `too_large` if the context does not fit in a frame. */
async function contextInFrame(
  { store }: FolderApp,
  call: Call,
  { sessionId, key }: SessionRecord,
  answer: AnsweredRequest | null,
): Promise<SessionContext> {
  const options = { byteBudget: contentBytes };
  const context =
    answer?.context(options) ??
    (await store.sessions.context(scopeOf(call), sessionId, options)) ??
    noSuchSession(sessionId);
  if (context.cut !== null) throw new SkeinError("too_large", { what: `The context of ${key}` });
  return context;
}

/**
 * Shows the context of a session whose agent is an ACP agent or is not configured here. Uses the session's own model
 * and no tools.
 */
function lookAt(
  app: FolderApp,
  session: SessionRecord,
  context: SessionContext,
  { answer = null, viewText }: ShownAs,
): ContextSource {
  const { config, clock } = app;
  const known = {
    images: { blob: (sha256: string) => app.store.blobs.get(scopeOfSession(session), sha256) },
    pruning: pruningOptions(config, answer?.at ?? clock.now()),
    ...present({ viewText }),
    ...present({ thinkingLevel: session.meta.thinkingLevel }),
    ...present({ historyLimit: sessionHistoryLimit(session, config.channels) }),
  };
  return { context, config, known, ...present({ ownModel: answer?.model }) };
}

function* masked(seen: ContextPayload, mask: Mask): Steps<ContextPayload> {
  if (mask.isOff) return seen;
  const { request, changes, diagnostics, wire } = seen;
  const { system, tools } = request;
  const messages: (typeof request.messages)[number][] = [];
  for (const message of request.messages) {
    messages.push(mask.value(message));
    yield messageBytes;
  }
  return {
    ...seen,
    request: {
      ...request,
      ...present({ system: system === undefined ? null : mask.text(system) }),
      ...present({ tools: tools === undefined ? null : mask.value(tools) }),
      messages,
    },
    changes: changes.map((each) => ({ ...each, note: mask.text(each.note) })),
    diagnostics: diagnostics.map((each) => ({ ...each, note: mask.text(each.note) })),
    ...(wire === undefined ? {} : { wire: mask.value(wire) }),
  };
}

/** A context, and the settings for the requests built from it. */
export interface ContextSource {
  readonly context: SessionContext;
  readonly config: Config;
  readonly known: Omit<RequestOptions, "settings" | "wire">;
  /** Defaults to the model in the context. */
  readonly ownModel?: ModelRef;
}

export interface ContextRequest {
  /** In `provider/model` format. Defaults to the session's own model. */
  readonly model?: string;
  readonly baseUrl?: string;
  readonly wire?: boolean;
}

/**
 * Shows what would be sent to a model for a file, or for a session whose agent is not configured. If neither the call
 * nor the context names a model, shows the unchanged context.
 */
export async function viewContext(
  { context, config, known, ownModel: own }: ContextSource,
  { model: name, baseUrl, wire = false }: ContextRequest,
): Promise<ContextPayload> {
  const named = name === undefined ? null : parseModel(name);
  if (named !== null) checkReachable(named, config.models, baseUrl);
  const model = named ?? own ?? ownModel(context);
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
    problem: "The session does not name a model",
    advice: "Set model in provider/model format (on the command line: --model <provider/model>)",
  });
}

/** Returns the configured settings for pruning old tool results. */
export function pruningOptions({ contextPruning }: Config, now: number): NonNullable<XrayOptions["pruning"]> {
  const { mode, ttl, tools } = contextPruning;
  const allow = tools.allow.length === 0 ? undefined : tools.allow;
  return { mode, ttlMs: ttl, lastCallAt: null, now, ...present({ allow }), deny: tools.deny };
}
