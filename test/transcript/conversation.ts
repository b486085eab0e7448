import type { ContextMessage } from "../../src/index.ts";
import type { AssistantBlock, AssistantMessage, Content, ToolCallBlock } from "../support/text.ts";
import type { Chance } from "./random.ts";

/** Well-formed conversations with models from several providers in one session. */

export interface Speaker {
  readonly provider: string;
  readonly api: string;
  readonly model: string;
}

export const speakers: readonly [Speaker, ...Speaker[]] = [
  { provider: "anthropic", api: "anthropic-messages", model: "claude-sonnet-4-5" },
  { provider: "google", api: "google-generative-ai", model: "gemini-2.5-pro" },
  { provider: "google", api: "google-generative-ai", model: "gemini-3-pro-preview" },
  { provider: "openai", api: "openai-responses", model: "gpt-5" },
  { provider: "local", api: "openai-completions", model: "qwen3" },
  { provider: "mistral", api: "mistral-conversations", model: "magistral-medium-latest" },
];

/** Signs thinking as the provider does. Unsigned or forged thinking is refused. */
export interface Signer {
  thinking(speaker: Speaker, thinking: string): string | undefined;
  /** The signatures that Google adds to calls and texts. */
  part(speaker: Speaker): string | undefined;
}

export const toolNames = ["read", "write_file", "search", "sessions_list"] as const;

/** One pixel. */
export const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

export class Conversation {
  readonly messages: ContextMessage[] = [];
  /** A unique word for each user message, which identifies it later. */
  readonly said: string[] = [];
  readonly #chance: Chance;
  readonly #signer: Signer;
  #time = 1_700_000_000_000;
  #count = 0;

  constructor(chance: Chance, signer: Signer) {
    this.#chance = chance;
    this.#signer = signer;
  }

  turns(count: number): this {
    let speaker = this.#chance.pick(speakers);
    for (let turn = 0; turn < count; turn++) {
      if (this.#chance.once(4)) speaker = this.#chance.pick(speakers);
      this.#userTurn();
      const steps = this.#chance.below(4);
      for (let step = 0; step < steps; step++) this.#toolStep(speaker);
      this.#add(this.#answer(speaker, false));
    }
    return this;
  }

  #add(message: ContextMessage): void {
    this.messages.push({ ...message, timestamp: this.#time++ });
  }

  #userTurn(): void {
    if (this.#chance.once(8)) {
      this.#add({ role: "custom", customType: "note", content: "From a hook.", timestamp: 0 });
    }
    if (this.#chance.once(10)) {
      this.#add({ role: "bashExecution", command: "ls", output: "a.txt\n", exitCode: 0 });
    }
    const provenance = this.#chance.once(6)
      ? { kind: "inter_session", sourceSessionKey: "agent:main:main", sourceTool: "sessions_send" }
      : this.#chance.once(2)
        ? { kind: "external_user" }
        : undefined;
    const content = this.#userContent();
    this.#add({ role: "user", content, ...(provenance === undefined ? {} : { provenance }) });
  }

  #userContent(): Content {
    const word = `said${this.said.length}x${this.#chance.below(1_000_000)}`;
    this.said.push(word);
    const text = this.#chance.pick([
      `Please do ${word}.`,
      `请做 ${word}。`,
      `${word}\n\n`,
      `[Inter-session message] ${word}`,
    ]);
    if (this.#chance.once(2)) return text;
    const image = { type: "image" as const, data: png, mimeType: "image/png" };
    return this.#chance.once(3) ? [{ type: "text", text }, image] : [{ type: "text", text }];
  }

  #toolStep(speaker: Speaker): void {
    const message = this.#answer(speaker, true);
    this.#add(message);
    for (const block of message.content) {
      if (block.type === "toolCall") this.#add(this.#result(block));
    }
  }

  #result(call: ToolCallBlock): ContextMessage {
    const image = { type: "image" as const, data: png, mimeType: "image/png" };
    const text = {
      type: "text" as const,
      text: this.#chance.pick(["ok", '{"a": 1}', "línea\n第二行", "x".repeat(300)]),
    };
    const content = this.#chance.once(8) ? [text, image] : this.#chance.once(20) ? [image] : [text];
    const details = this.#chance.once(4) ? { details: { secret: "for programs only" } } : {};
    const isError = this.#chance.once(7);
    return { role: "toolResult", toolCallId: call.id, toolName: call.name, content, isError, ...details };
  }

  #answer(speaker: Speaker, calls: boolean): AssistantMessage {
    const content: AssistantBlock[] = [];
    if (this.#chance.once(2)) content.push(this.#thinking(speaker));
    if (!calls || this.#chance.once(2))
      content.push({ type: "text", text: this.#chance.pick(["Done.", "好的。", "Let me see."]) });
    if (calls) {
      const count = this.#chance.between(1, 3);
      for (let each = 0; each < count; each++) content.push(this.#call(speaker, each === 0));
    }
    const { provider, api, model } = speaker;
    return { role: "assistant", content, provider, api, model, stopReason: calls ? "toolUse" : "stop" };
  }

  #thinking(speaker: Speaker): AssistantBlock {
    const thinking = this.#chance.pick(["Hm, let me think.", "想一想。"]);
    const signature = this.#signer.thinking(speaker, thinking);
    return {
      type: "thinking",
      thinking,
      ...(signature === undefined ? {} : { thinkingSignature: signature }),
    };
  }

  #call(speaker: Speaker, first: boolean): ToolCallBlock {
    const signature = first ? this.#signer.part(speaker) : undefined;
    return {
      type: "toolCall",
      id: this.#callId(speaker),
      name: this.#chance.pick(toolNames),
      arguments: this.#chance.pick<Record<string, unknown>>([
        {},
        { path: "a.txt" },
        { query: "京都", deep: { list: [1, null, "x"] } },
      ]),
      ...(signature === undefined ? {} : { thoughtSignature: signature }),
    };
  }

  #callId(speaker: Speaker): string {
    const number = this.#count++;
    const name = number.toString(36).padStart(6, "0");
    switch (speaker.api) {
      case "anthropic-messages":
        return `toolu_01${name}`;
      case "google-generative-ai":
        return `${name}-aaaa-bbbb`;
      case "openai-responses":
        return this.#chance.once(2) ? `call_${name}` : `call_${name}|fc_${name}`;
      case "mistral-conversations":
        return `m${name.padStart(8, "0")}`;
      default:
        // Local servers often restart their numbering in each turn.
        return this.#chance.once(2) ? `call_${number % 3}` : `call_${name}`;
    }
  }
}

export function speakerOf(model: string): Speaker {
  const found = speakers.find((speaker) => speaker.model === model);
  if (found === undefined) throw new Error(`no speaker ${model}`);
  return found;
}
