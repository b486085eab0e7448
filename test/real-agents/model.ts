// A twin of a provider that acts as a real agent's model. Its replies depend only on its requests.
import type { Scripted, ScriptedBlock, Twin, TwinApi, TwinRequest } from "../../src/entry-testing.ts";
import { startTwin } from "../../src/entry-testing.ts";
import { askedOf } from "./asked.ts";

export const tasks = {
  hello: "Say who you are.",
  again: "Say it once more.",
  write: "Write the note.",
  wait: "Wait for me.",
} as const;

export const says = { hello: "I am a twin.", done: "The note is written." } as const;

export interface Model {
  readonly twin: Twin;
  /** Resolves when the model is in the middle of an endless answer. */
  readonly isWaiting: Promise<void>;
}

/** `call` makes the agent's own tool write the note. */
export async function startModel(
  api: TwinApi,
  call: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> },
): Promise<Model> {
  const waiting = Promise.withResolvers<void>();
  const answer = (request: TwinRequest): Scripted => {
    const { hasTools, isResult, text } = askedOf(api, request);
    if (!hasTools) return reply({ type: "text", text: "A title" });
    if (isResult) return reply({ type: "text", text: says.done });
    switch (taskOf(text)) {
      case "write":
        return reply(thought, { type: "toolCall", ...call });
      case "wait":
        waiting.resolve();
        return {
          fault: "stall",
          reply: reply({ type: "text", text: "This takes a long while, and there is more to say of it." }),
          afterEvents: 5,
        };
      default:
        return reply(thought, { type: "text", text: says.hello });
    }
  };
  const twin = await startTwin({ api, otherwise: answer });
  return { twin, isWaiting: waiting.promise };
}

/** Providers expect a thought before a call if thinking is enabled. */
const thought: ScriptedBlock = { type: "thinking", thinking: "That is easily done." };

function reply(...content: readonly ScriptedBlock[]) {
  return { content, usage: { input: 1000, output: 50, cacheRead: 200 } };
}

/** The last request. Agents include earlier unanswered ones in the same message. */
function taskOf(text: string): keyof typeof tasks {
  const places = (Object.keys(tasks) as (keyof typeof tasks)[]).map((task) => ({
    task,
    at: text.lastIndexOf(tasks[task]),
  }));
  return places.reduce((latest, each) => (each.at > latest.at ? each : latest), { task: "hello", at: -1 })
    .task;
}
