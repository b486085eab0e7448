import type { SessionContext } from "../core/context.ts";
import type { ContextPayload } from "../protocol/session-payloads.ts";
import { visibleMessage } from "../transcript/visible.ts";

/** What would be sent to a model from where the session stands. */
export function contextView(context: SessionContext): ContextPayload {
  const { messages, model, thinkingLevel, system, diagnostics } = context;
  return {
    request: {
      ...(model === null ? {} : { provider: model.provider, model: model.modelId }),
      thinkingLevel,
      ...(system === null ? {} : { system }),
      messages: messages.map(visibleMessage).filter((message) => message !== null),
    },
    tokens: null,
    changes: [],
    diagnostics: [...diagnostics],
  };
}
