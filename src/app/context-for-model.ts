import type { ModelSettings } from "../config/model-settings.ts";
import type { SessionContext } from "../core/context.ts";
import { present } from "../core/present.ts";
import type { ContextPayload } from "../protocol/session-views.ts";
import type { XrayOptions } from "../sessions/xray.ts";
import type { ModelRef } from "../transcript/parse-model.ts";
import { apiOf } from "../transcript/policy.ts";

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
  const { xray } = await import("../sessions/xray.ts");
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
