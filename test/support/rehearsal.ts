import type {
  JSONObject,
  JSONValue,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";

/** Requests and replies for the tests of the rehearsal models. */

/** The parameters of the tools that the rehearsal model calls, as listed in the requirement. */
export const parameters: Readonly<Record<string, readonly string[]>> = {
  sessions_list: [
    "kinds",
    "limit",
    "activeMinutes",
    "messageLimit",
    "search",
    "label",
    "agentId",
    "archived",
    "cursor",
  ],
  sessions_history: ["sessionKey", "limit", "includeTools", "before", "after"],
  sessions_send: ["sessionKey", "label", "agentId", "message", "timeoutSeconds", "role"],
  sessions_spawn: ["task", "label", "runtime", "agentId", "model", "thinking", "cwd", "mode", "cleanup"],
  sessions_yield: ["message", "waitFor"],
  session_status: ["sessionKey"],
  subagents: ["action", "target", "message", "recentMinutes"],
  session_search: ["query", "sessionKey", "agentId", "role", "since", "until", "bySession", "limit"],
};

export function tool(
  name: string,
  inputSchema: JSONObject = { type: "object" },
): LanguageModelV4FunctionTool {
  return { type: "function", name, inputSchema } as LanguageModelV4FunctionTool;
}

export const weather = tool("weather", {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer", minimum: 1 } },
  required: ["city"],
});

export const allTools = [...Object.keys(parameters).map((name) => tool(name)), weather];

export const user = (text: string): LanguageModelV4Message => ({
  role: "user",
  content: [{ type: "text", text }],
});
export const system = (content: string): LanguageModelV4Message => ({ role: "system", content });
export const assistant = (text: string): LanguageModelV4Message => ({
  role: "assistant",
  content: [{ type: "text", text }],
});
export const from = (session: string, text: string, sourceTool = "sessions_send") =>
  user(`[Inter-session message] sourceSession=${session} sourceTool=${sourceTool}\n${text}`);

export function asked(
  messages: string | readonly LanguageModelV4Message[],
  more: Partial<LanguageModelV4CallOptions> = {},
): LanguageModelV4CallOptions {
  return {
    prompt: typeof messages === "string" ? [user(messages)] : [...messages],
    tools: allTools,
    ...more,
  };
}

/** The calls as they appear in the next prompt, each with its result. */
export function answered(
  content: readonly LanguageModelV4Content[],
  value: JSONValue,
): LanguageModelV4Message[] {
  const made = content.filter((part) => part.type === "tool-call");
  return [
    {
      role: "assistant",
      content: made.map((part) => ({ ...part, input: JSON.parse(part.input) })),
    },
    {
      role: "tool",
      content: made.map(({ toolCallId, toolName }) => ({
        type: "tool-result",
        toolCallId,
        toolName,
        output: { type: "json", value },
      })),
    },
  ];
}

export async function told(model: LanguageModelV4, request: LanguageModelV4CallOptions) {
  const { content, finishReason, usage } = await model.doGenerate(request);
  return {
    content,
    finish: finishReason.unified,
    usage,
    text: content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(""),
    calls: content.flatMap((part) =>
      part.type === "tool-call"
        ? [{ name: part.toolName, arguments: JSON.parse(part.input) as JSONObject, id: part.toolCallId }]
        : [],
    ),
  };
}

export async function streamed(model: LanguageModelV4, request: LanguageModelV4CallOptions) {
  const parts: LanguageModelV4StreamPart[] = [];
  for await (const part of (await model.doStream(request)).stream) parts.push(part);
  return parts;
}

/** Returns a stream's result in the form of a complete answer. */
export function collected(parts: readonly LanguageModelV4StreamPart[]): LanguageModelV4Content[] {
  const content: LanguageModelV4Content[] = [];
  const texts = new Map<string, string>();
  for (const part of parts) {
    if (part.type === "text-delta" || part.type === "reasoning-delta")
      texts.set(part.id, `${texts.get(part.id) ?? ""}${part.delta}`);
    else if (part.type === "text-end") content.push({ type: "text", text: texts.get(part.id) ?? "" });
    else if (part.type === "reasoning-end")
      content.push({ type: "reasoning", text: texts.get(part.id) ?? "" });
    else if (part.type === "tool-call") content.push(part);
  }
  return content;
}
