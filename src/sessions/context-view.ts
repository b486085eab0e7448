import type { SessionContext } from "../core/context.ts";
import type { ContextPayload } from "../protocol/session-payloads.ts";
import { tokensByPart } from "../transcript/estimate-tokens.ts";
import { visibleMessage } from "../transcript/visible-message.ts";

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
