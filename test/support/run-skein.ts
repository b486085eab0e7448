// A Skein instance for the run tests, in memory or in a folder, with a scripted model.

import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { ModelStep } from "../../src/entry-testing.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { AgentSpec, Entry, Message, Skein, SkeinOptions, ToolDefinition } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { emptyStore } from "./empty-store.ts";

export interface RunSkein {
  readonly skein: Skein;
  readonly reports: unknown[];
}

export interface RunSkeinOptions extends Partial<SkeinOptions> {
  readonly script?:
    | readonly ModelStep[]
    | ((request: LanguageModelV4CallOptions, index: number) => ModelStep);
  readonly model?: LanguageModelV4;
  readonly tools?: readonly ToolDefinition[];
  readonly agent?: Partial<AgentSpec>;
}

/**
 * By this clock, the leases of all other processes have expired, while this process's own leases are valid by theirs.
 * No test has to wait, and a slow process is not lost.
 */
export const laterClock = { now: () => Date.now() + 40_000 };

export async function openRuns(given: RunSkeinOptions): Promise<RunSkein> {
  const { options, reports } = await runOptions(given);
  return { skein: await createSkein(options), reports };
}

/** The options for a Skein instance with a scripted model and one agent, `main`. */
export async function runOptions(given: RunSkeinOptions) {
  const { script = [], model = scriptedModel(script), tools = [], agent, ...rest } = given;
  const reports: unknown[] = [];
  const options: SkeinOptions = {
    ...(rest.store === undefined && rest.memory === undefined ? await emptyStore(rest) : {}),
    config: null,
    env: {},
    models: { "rehearsal/script": model },
    agents: [defineAgent({ id: "main", model: "rehearsal/script", tools, ...agent })],
    report: (error) => void reports.push(error),
    ...rest,
  };
  return { options, reports };
}

export async function entriesOf(skein: Skein, sessionId: string): Promise<readonly Entry[]> {
  const page = await skein.store.sessions.page({ agentId: "main" }, sessionId, {
    along: "branch",
    limit: 1000,
  });
  return page?.entries ?? [];
}

export async function messagesOf(skein: Skein, sessionId: string): Promise<readonly Message[]> {
  return (await entriesOf(skein, sessionId)).flatMap((entry) =>
    entry.type === "message" ? [entry.message] : [],
  );
}

/** Describes a message in one word: its role, and its text or the tools that it calls. */
export function brief(message: Message): string {
  switch (message.role) {
    case "user":
    case "toolResult":
      return `${message.role}: ${wordsOf(message.content)}`;
    case "assistant": {
      const calls = message.content.flatMap((block) => (block.type === "toolCall" ? [`→${block.name}`] : []));
      return ["assistant:", wordsOf(message.content), ...calls].filter((part) => part !== "").join(" ");
    }
    default:
      return message.role;
  }
}

function wordsOf(content: string | readonly { readonly type: string }[]): string {
  if (typeof content === "string") return content;
  return content.flatMap((block) => ("text" in block ? [String(block.text)] : [])).join(" ");
}

/** Returns a conversation's problems: calls without a result, or with a result in the wrong position. */
export function pairingProblems(messages: readonly Message[]): string[] {
  const problems: string[] = [];
  let open: string[] = [];
  for (const message of messages) {
    if (message.role === "toolResult") {
      if (!open.includes(message.toolCallId))
        problems.push(`a result of ${message.toolCallId} without its call`);
      open = open.filter((id) => id !== message.toolCallId);
      continue;
    }
    if (open.length > 0) problems.push(`${message.role} before the results of ${open.join(", ")}`);
    const isAnswer = message.role === "assistant";
    open = isAnswer ? message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : [])) : [];
  }
  return open.length > 0 ? [...problems, `no results of ${open.join(", ")}`] : problems;
}

/** A point at which something waits until a test lets it continue. */
export function gateOf(): {
  readonly reached: Promise<void>;
  readonly pass: () => void;
  wait(): Promise<void>;
} {
  const reached = Promise.withResolvers<void>();
  const passed = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    pass: passed.resolve,
    wait: () => {
      reached.resolve();
      return passed.promise;
    },
  };
}
