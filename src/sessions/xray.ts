import type { ModelSettings } from "../config/model-settings.ts";
import type { SessionContext } from "../core/context.ts";
import type { Diagnostic } from "../core/diagnostics.ts";
import { present } from "../core/present.ts";
import type { ContextPayload } from "../protocol/session-views.ts";
import type { Api, Change, TranscriptMessage, TranscriptOptions } from "../transcript/contract.ts";
import type { TokensByPart } from "../transcript/estimate-tokens.ts";
import { tokensByPart } from "../transcript/estimate-tokens.ts";
import { modelInfo } from "../transcript/model-table.ts";
import type { ModelRef } from "../transcript/parse-model.ts";
import { parseModel } from "../transcript/parse-model.ts";
import type { PolicyRequest } from "../transcript/policy.ts";
import { apiOf, resolveTranscriptPolicy } from "../transcript/policy.ts";
import { prepareTranscript } from "../transcript/steps/prepare-transcript.ts";
import { visibleMessage } from "../transcript/visible-message.ts";

/** Whatever has a context: a session, a handle of one, or the context itself. */
export type XraySession = SessionContext | { context(): SessionContext | Promise<SessionContext> };

/** What an X-ray may know beside the session and the model. */
export interface XrayOptions extends Pick<TranscriptOptions, "historyLimit" | "images" | "pruning"> {
  /** Left out: what is known of the model. */
  readonly contextWindow?: number;
  /** Whether the model sees images. Left out: what is known of it. */
  readonly vision?: boolean;
  /** Left out: the session's own, in the rare file that holds one. */
  readonly system?: string;
  /** The tools that would be offered. Left out: not known, and no call is dropped for that. */
  readonly tools?: readonly { readonly name: string }[];
  /** Left out: the session's own. */
  readonly thinkingLevel?: string;
  readonly overrides?: PolicyRequest["overrides"];
}

/** What a model would be sent, what it comes to, and everything that was done to get there. */
export interface Xray {
  readonly request: {
    readonly provider: string;
    readonly api: Api;
    readonly model: string;
    readonly thinkingLevel: string;
    /** Absent: none is known. */
    readonly system?: string;
    readonly messages: readonly TranscriptMessage[];
    /** Absent: not known. */
    readonly tools?: readonly { readonly name: string }[];
  };
  readonly tokens: TokensByPart;
  readonly changes: readonly Change[];
  /** What reading the session found odd. */
  readonly diagnostics: readonly Diagnostic[];
}

/** The request of a session with everything that its agent, its run and the configuration add. */
export interface SessionXray extends Xray {
  readonly request: Xray["request"] & {
    /** Servers whose tools are not known before they are started. */
    readonly toolsUnlisted?: readonly string[];
  };
  /** The body as the provider receives it, where it was asked for. */
  readonly wire?: unknown;
}

/**
 * Shows what a model would be sent from where a session stands. Nothing is sent, and the session stays as it is.
 *
 * @example
 * ```ts
 * import { SessionTree, xray } from "skein";
 * const tree = SessionTree.create({ cwd: "/home/ann" });
 * tree.append({ type: "message", message: { role: "user", content: "Plan three days in Kyoto" } });
 * const { request, tokens, changes } = await xray(tree, "anthropic/claude-sonnet-4-5");
 * ```
 */
export async function xray(
  session: XraySession,
  model: string | ModelRef,
  options: XrayOptions = {},
): Promise<Xray> {
  const context = "context" in session ? await session.context() : session;
  const { tools } = options;
  const named = typeof model === "string" ? parseModel(model) : model;
  const info = modelInfo(named.provider, named.model, apiOf(named.provider, named.api));
  const contextWindow = options.contextWindow ?? info?.contextWindow;
  const sight = (options.vision ?? info?.vision) === false ? { images: null } : {};
  const policy = resolveTranscriptPolicy({ ...named, overrides: { ...sight, ...options.overrides } });
  const { messages, changes } = await prepareTranscript(context.messages, policy, {
    ...present({ contextWindow, historyLimit: options.historyLimit }),
    ...present({ images: options.images, pruning: options.pruning }),
    entryIds: context.entryIds,
    ...(tools === undefined ? {} : { tools: tools.map(({ name }) => name) }),
  });
  const system = options.system ?? context.system ?? undefined;
  const { provider, api } = policy;
  return {
    request: {
      provider,
      api,
      model: policy.model,
      thinkingLevel: options.thinkingLevel ?? context.thinkingLevel,
      ...present({ system }),
      messages,
      ...present({ tools }),
    },
    tokens: tokensByPart({ messages, context: context.messages, system, tools, window: contextWindow }),
    changes,
    diagnostics: context.diagnostics,
  };
}

/** The model that a session stands with, and the wire format that it was last spoken to in; `null`: none is known. */
export function ownModel(context: SessionContext): ModelRef | null {
  const { model } = context;
  if (model === null) return null;
  const last = context.messages.findLast(
    (message) =>
      message.role === "assistant" && message.provider === model.provider && message.model === model.modelId,
  );
  const api = last?.role === "assistant" ? last.api : undefined;
  return { provider: model.provider, model: model.modelId, ...present({ api }) };
}

/** What a model would see from where the session stands, before anything is done to it for a provider. */
export function contextView(context: SessionContext): ContextPayload {
  const { model, thinkingLevel, system, diagnostics } = context;
  const messages = context.messages.map(visibleMessage).filter((message) => message !== null);
  return {
    request: {
      ...(model === null ? {} : { provider: model.provider, model: model.modelId }),
      thinkingLevel,
      ...(system === null ? {} : { system }),
      messages,
    },
    tokens: tokensByPart({ messages, context: context.messages, system: system ?? undefined }),
    changes: [],
    diagnostics,
  };
}

/** What is known of a request beside the session and the model. */
export interface RequestOptions
  extends Omit<XrayOptions, "contextWindow" | "vision" | "overrides" | "tools"> {
  /** What the configuration says of the model. */
  readonly settings?: ModelSettings;
  /** Lets the provider's package make the body that it would send, and adds what it did to it. */
  readonly wire?: boolean;
}

/** Shows what a model would be sent from a context whose agent is not known, such as a lone file. */
export async function contextForModel(
  context: SessionContext,
  model: ModelRef,
  { settings, wire, ...known }: RequestOptions = {},
): Promise<ContextPayload> {
  const { modelInfo } = await import("../transcript/model-table.ts");
  const { modelRequest } = await import("../agents/models/model-request.ts");
  const { shrinkImage } = await import("../agents/shrink-image.ts");
  const { contextWindow, maxOutput, vision } = settings ?? {};
  const table = modelInfo(model.provider, model.model, apiOf(model.provider, model.api));
  const info = { ...table, ...present({ contextWindow, maxOutput, vision }) };
  const looked = await xray(context, model, {
    ...known,
    images: { shrink: shrinkImage, ...known.images },
    ...present({ contextWindow, vision, overrides: settings?.overrides }),
  });
  const { api, system, thinkingLevel, messages } = looked.request;
  const policy = { ...model, api };
  const request = modelRequest({ transcript: messages, policy, system, thinkingLevel, info });
  const changes = [...looked.changes, ...request.changes];
  if (wire !== true) return { ...looked, changes };
  const { captureWire } = await import("../agents/models/open-model.ts");
  const { body, warnings } = await captureWire(request.options, policy, settings?.type);
  return { ...looked, changes: [...changes, ...warnings], wire: body };
}
