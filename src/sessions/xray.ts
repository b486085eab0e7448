import type { ModelSettings } from "../config/model-settings.ts";
import type { SessionContext } from "../core/context.ts";
import type { Diagnostic } from "../core/diagnostics.ts";
import { present } from "../core/present.ts";
import { atOnce, Slices } from "../core/slices.ts";
import type { ContextPayload } from "../protocol/session-views.ts";
import type { Api, Change, TranscriptMessage, TranscriptOptions } from "../transcript/contract.ts";
import type { TokensByPart } from "../transcript/estimate-tokens.ts";
import { tokensByPart } from "../transcript/estimate-tokens.ts";
import { modelMessage } from "../transcript/model-message.ts";
import type { ModelRef } from "../transcript/model-table.ts";
import { modelInfo, parseModel } from "../transcript/model-table.ts";
import type { PolicyRequest } from "../transcript/policy.ts";
import { apiOf, resolveTranscriptPolicy } from "../transcript/policy.ts";
import { prepareTranscript } from "../transcript/steps/prepare-transcript.ts";
import type { RequestPart, ViewText } from "./explain-request.ts";
import { explainRequest } from "./explain-request.ts";

/** A context, or an object that returns one. */
export type XraySession = SessionContext | { context(): SessionContext | Promise<SessionContext> };

/** Options for {@link xray}. */
export interface XrayOptions extends Pick<TranscriptOptions, "historyLimit" | "images" | "pruning"> {
  /** Defaults to the window known for the model. */
  readonly contextWindow?: number;
  /** Whether the model accepts images. Defaults to what is known about the model. */
  readonly vision?: boolean;
  /** Defaults to the session's own system prompt, if its file has one. */
  readonly system?: string;
  /** The tools that would be offered. If absent, they are unknown, and no call is dropped for lack of a tool. */
  readonly tools?: readonly { readonly name: string }[];
  /** Defaults to the session's thinking level. */
  readonly thinkingLevel?: string;
  readonly overrides?: PolicyRequest["overrides"];
}

/** A request to a model, its token estimates, and all changes made for the provider. */
export interface Xray {
  readonly request: {
    readonly provider: string;
    readonly api: Api;
    readonly model: string;
    readonly thinkingLevel: string;
    /** Absent if unknown. */
    readonly system?: string;
    readonly messages: readonly TranscriptMessage[];
    /** Absent if unknown. */
    readonly tools?: readonly { readonly name: string }[];
  };
  readonly tokens: TokensByPart;
  /**
   * The entries and tokens for each message. Together with `tokens.system` and `tokens.tools`, the tokens add up to the
   * total.
   */
  readonly parts: readonly RequestPart[];
  readonly changes: readonly Change[];
  /** Problems found when the session was read. */
  readonly diagnostics: readonly Diagnostic[];
}

/** A session's request, including what its agent, its run and the configuration add. */
export interface SessionXray extends Xray {
  readonly request: Xray["request"] & {
    /** Servers whose tools are unknown until they are started. */
    readonly toolsUnlisted?: readonly string[];
  };
  /** The request body as the provider would receive it, if requested. */
  readonly wire?: unknown;
}

/**
 * Shows what a model would be sent for a session. Sends nothing and does not change the session.
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
  return lookThrough(session, model, options);
}

async function lookThrough(
  session: XraySession,
  model: string | ModelRef,
  options: XrayOptions,
  viewText?: ViewText,
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
  const explained = await new Slices().run(explainRequest({ context, messages, changes }, viewText));
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
    ...explained,
    diagnostics: context.diagnostics,
  };
}

/** Returns a session's model and the API of its last answer, or `null` if unknown. */
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

/** Returns the context that a model would see, before any change for a provider. */
export function contextView(context: SessionContext): ContextPayload {
  const { model, thinkingLevel, system, diagnostics } = context;
  const messages = context.messages.map(modelMessage).filter((message) => message !== null);
  return {
    request: {
      ...(model === null ? {} : { provider: model.provider, model: model.modelId }),
      thinkingLevel,
      ...(system === null ? {} : { system }),
      messages,
    },
    tokens: tokensByPart({ messages, context: context.messages, system: system ?? undefined }),
    ...atOnce(explainRequest({ context, messages, changes: [] })),
    diagnostics,
  };
}

/** Options for {@link contextForModel}. */
export interface RequestOptions
  extends Omit<XrayOptions, "contextWindow" | "vision" | "overrides" | "tools"> {
  /** The model's configured settings. */
  readonly settings?: ModelSettings;
  /** Adds the request body that the provider's package would send. */
  readonly wire?: boolean;
  /** Returns the text in changes as the reader is allowed to see it. */
  readonly viewText?: ViewText;
}

/** Shows what a model would be sent for a context without a known agent, such as a single file. */
export async function contextForModel(
  context: SessionContext,
  model: ModelRef,
  { settings, wire, viewText, ...known }: RequestOptions = {},
): Promise<ContextPayload> {
  const { modelInfo } = await import("../transcript/model-table.ts");
  const { modelRequest } = await import("../agents/models/model-request.ts");
  const { shrinkImage } = await import("../agents/shrink-image.ts");
  const { contextWindow, maxOutput, vision } = settings ?? {};
  const table = modelInfo(model.provider, model.model, apiOf(model.provider, model.api));
  const info = { ...table, ...present({ contextWindow, maxOutput, vision }) };
  const options = {
    ...known,
    images: { shrink: shrinkImage, ...known.images },
    ...present({ contextWindow, vision, overrides: settings?.overrides }),
  };
  const looked = await lookThrough(context, model, options, viewText);
  const { api, system, thinkingLevel, messages } = looked.request;
  const policy = { ...model, api };
  const request = modelRequest({ transcript: messages, policy, system, thinkingLevel, info });
  const changes = [...looked.changes, ...request.changes];
  if (wire !== true) return { ...looked, changes };
  const { captureWire } = await import("../agents/models/open-model.ts");
  const { body, warnings } = await captureWire(request.options, policy, settings?.type);
  return { ...looked, changes: [...changes, ...warnings], wire: body };
}
