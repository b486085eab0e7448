import type { ScriptedReply, ScriptedUsage } from "./contract.ts";

/** What a request comes to. */
export interface RequestSize {
  /** About as many as its JSON has. */
  readonly bytes: number;
  /** Those of its texts and names alone. */
  readonly text: number;
  /** Whether no text has half a surrogate pair, which no server reads as JSON. */
  readonly isWellFormed: boolean;
}

/** Goes through the value once, however deep it is. */
export function sizeOf(value: unknown): RequestSize {
  let bytes = 0;
  let text = 0;
  let isWellFormed = true;
  const take = (part: string) => {
    text += Buffer.byteLength(part);
    bytes += 2;
    isWellFormed &&= part.isWellFormed();
  };
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === "string") take(next);
    else if (typeof next !== "object" || next === null) bytes += String(next).length;
    else {
      bytes += 2;
      if (!Array.isArray(next)) for (const name of Object.keys(next)) take(name);
      const values: readonly unknown[] = Array.isArray(next) ? next : Object.values(next);
      bytes += 2 * values.length;
      for (const each of values) waiting.push(each);
    }
  }
  return { bytes: bytes + text, text, isWellFormed };
}

/** Four bytes a token: right for English, near enough for the rest. */
export function tokensOf(bytes: number): number {
  return Math.ceil(bytes / 4);
}

/** The scripted usage, or one that is counted; `prompt`: the tokens of the request. */
export function usageOf(reply: ScriptedReply, prompt: number): ScriptedUsage {
  if (reply.usage !== undefined) return reply.usage;
  let output = 0;
  let reasoning = 0;
  for (const block of reply.content) {
    if (block.type === "thinking") reasoning += tokensOf(Buffer.byteLength(block.thinking));
    else if (block.type === "text") output += tokensOf(Buffer.byteLength(block.text));
    else output += tokensOf(sizeOf(block.arguments).bytes + block.name.length);
  }
  const thought = reasoning === 0 ? {} : { reasoning };
  return { input: prompt, output: Math.max(1, output + reasoning), ...thought };
}

/** Why a reply ended: as scripted, else by whether it has calls. */
export function stopReasonOf(reply: ScriptedReply): "stop" | "length" | "toolUse" {
  const hasCalls = reply.content.some((block) => block.type === "toolCall");
  return reply.stopReason ?? (hasCalls ? "toolUse" : "stop");
}
