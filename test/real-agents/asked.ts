import type { TwinApi, TwinRequest } from "../../src/entry-testing.ts";
// A real agent's requests to its model, in any wire format.

export interface Asked {
  /** `false` for requests that agents make for titles and the like. */
  readonly hasTools: boolean;
  /** The full text of the last user message. */
  readonly text: string;
  /** `true` if the request ends with a tool result. */
  readonly isResult: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

export function askedOf(api: TwinApi, { body }: TwinRequest): Asked {
  const fields = body as Fields;
  const list = listOf(fields[listNames[api]]);
  const last = list.at(-1) ?? {};
  return {
    hasTools: listOf(fields.tools).length > 0,
    text: textOf(list.findLast(({ role }) => role === "user") ?? {}),
    isResult: resultTypes.has(String(last.type)) || last.role === "tool" || blocksOf(last).some(isResult),
  };
}

const listNames: Readonly<Record<TwinApi, string>> = {
  "anthropic-messages": "messages",
  "google-generative-ai": "contents",
  "openai-completions": "messages",
  "openai-responses": "input",
  "mistral-conversations": "messages",
};

const resultTypes: ReadonlySet<string> = new Set(["function_call_output", "custom_tool_call_output"]);

function isResult(block: Fields): boolean {
  return block.type === "tool_result" || "functionResponse" in block;
}

function textOf(message: Fields): string {
  if (typeof message.content === "string") return message.content;
  return blocksOf(message)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("\n");
}

function blocksOf({ content, parts }: Fields): readonly Fields[] {
  return listOf(content ?? parts);
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value : [];
}
