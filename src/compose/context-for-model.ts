import type { ModelSettings } from "../config/model-settings.ts";
import type { SessionContext } from "../core/context.ts";
import { present } from "../core/present.ts";
import type { ContextPayload } from "../protocol/session-payloads.ts";
import type { OfferedTools } from "../sessions/skein/skein.ts";
import type { Xray, XrayOptions } from "../sessions/xray.ts";
import type { ModelRef } from "../transcript/parse-model.ts";
import { apiOf } from "../transcript/policy.ts";

/** What is known of a request beside the session and the model. */
export interface RequestOptions
  extends Omit<XrayOptions, "contextWindow" | "vision" | "overrides" | "tools"> {
  /** Left out: the tools are not known. */
  readonly offered?: OfferedTools;
  /** What the configuration says of the model. */
  readonly settings?: ModelSettings;
  /** Lets the provider's package make the body that it would send, and adds what it did to it. */
  readonly wire?: boolean;
}

/**
 * What a model would be sent from a context, as far as the request itself: what it cannot be asked for is among the
 * changes.
 */
export async function contextForModel(
  context: SessionContext,
  model: ModelRef,
  { settings, wire, offered, ...known }: RequestOptions = {},
): Promise<ContextPayload> {
  const { modelInfo } = await import("../transcript/model-table.ts");
  const { modelRequest } = await import("../runtimes/ai-sdk/model-request.ts");
  const { shrinkImage } = await import("../runtimes/shrink-image.ts");
  const { xray } = await import("../sessions/xray.ts");
  const { contextWindow, maxOutput, vision } = settings ?? {};
  const table = modelInfo(model.provider, model.model, apiOf(model.provider, model.api));
  const info = { ...table, ...present({ contextWindow, maxOutput, vision }) };
  const looked = await xray(context, model, {
    ...known,
    ...present({ tools: offered === undefined ? null : namesKnown(context, offered) }),
    images: { shrink: shrinkImage, ...known.images },
    ...present({ contextWindow, vision, overrides: settings?.overrides }),
  });
  const { api, system, thinkingLevel, messages } = looked.request;
  const policy = { ...model, api };
  const tools = offered?.tools;
  const request = modelRequest({ transcript: messages, policy, system, tools, thinkingLevel, info });
  const seen: ContextPayload = offered === undefined ? looked : withTools(looked, offered);
  const changes = [...seen.changes, ...request.changes];
  if (wire !== true) return { ...seen, changes };
  const { captureWire } = await import("../runtimes/ai-sdk/wire.ts");
  const { body, warnings } = await captureWire(request.options, policy, settings?.type);
  return { ...seen, changes: [...changes, ...warnings], wire: body };
}

/** What is offered; of servers that were not asked, the tools that the history calls, which would be dropped from it else. */
function namesKnown({ messages }: SessionContext, { tools, unlisted }: OfferedTools) {
  const called = messages.flatMap((message) =>
    message.role === "assistant" && typeof message.content !== "string"
      ? message.content.flatMap((block) => (block.type === "toolCall" ? [block.name] : []))
      : [],
  );
  const isUnlisted = (name: string) => unlisted.some(({ prefix }) => name.startsWith(prefix));
  return [...tools, ...[...new Set(called)].filter(isUnlisted).map((name) => ({ name }))];
}

function withTools({ request, ...seen }: Xray, { tools, unlisted }: OfferedTools): ContextPayload {
  const toolsUnlisted = unlisted.length === 0 ? null : unlisted.map(({ from }) => from);
  return { ...seen, request: { ...request, tools, ...present({ toolsUnlisted }) } };
}
