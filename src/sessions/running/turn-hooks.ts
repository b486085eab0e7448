import type { Tool, TurnHooks, TurnModel } from "../../agents/contract.ts";
import type { AssistantMessage, ToolCallBlock, ToolResultMessage } from "../../core/messages.ts";
import type { HookRegistry } from "../hooks.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** The hooks of a turn, with what a run knows filled in. */
export function turnHooks(
  hooks: HookRegistry,
  ctx: RuntimeContext,
  about: { readonly model: TurnModel; readonly system: string | null; readonly tools: readonly Tool[] },
): TurnHooks {
  const { provider, api, model } = about.model.policy;
  const asked = { provider, api, model, ctx };
  return {
    beforeToolCall: (call) => hooks.ask("before_tool_call", { ...called(call), ctx }),
    afterToolCall: (call, result, durationMs) =>
      hooks.notify("after_tool_call", {
        ...called(call),
        result: result as ToolResultMessage,
        durationMs,
        ctx,
      }),
    llmInput: (messages) => {
      const tools = about.tools.map(({ name }) => name);
      return hooks.notify("llm_input", { ...asked, system: about.system, messages, tools });
    },
    llmOutput: (message) => hooks.notify("llm_output", { ...asked, message: message as AssistantMessage }),
  };
}

function called({ id, name, arguments: args }: ToolCallBlock) {
  return { toolCallId: id, toolName: name, arguments: args };
}
