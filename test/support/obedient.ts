import { tmpdir } from "node:os";
import type { LanguageModelV4CallOptions, LanguageModelV4Message } from "@ai-sdk/provider";
import type { ModelStep } from "../../src/entry-testing.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { AgentSpec, RuntimeContext, Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { emptyStore } from "./empty-store.ts";

/** Agents that obey the command in the last message: `DO [[tool, arguments], …]`, `SAY words` or `STALL`. */

export type Told = readonly [tool: string, args?: Readonly<Record<string, unknown>>];
export type Result = Readonly<Record<string, unknown>>;

export interface Obedient {
  readonly skein: Skein;
  readonly requests: readonly LanguageModelV4CallOptions[];
  readonly reported: unknown[];
  /** Makes one tool call for a session, outside a run. */
  call(session: RuntimeContext, tool: string, args?: unknown): Promise<Result>;
  /** Returns the results of the calls that a session makes in a turn. */
  turn(session: RuntimeContext, ...calls: readonly Told[]): Promise<readonly Result[]>;
}

/** Returns a message that instructs an agent to make these calls. */
export function told(...calls: readonly Told[]): string {
  return `DO ${JSON.stringify(calls)}`;
}

export async function obedient(
  agents: readonly Partial<AgentSpec>[] = [{}],
  options: SkeinOptions = {},
): Promise<Obedient> {
  const model = scriptedModel(step);
  const reported: unknown[] = [];
  const skein = await createSkein({
    ...(options.dir === undefined ? await emptyStore(options) : {}),
    config: null,
    env: {},
    models: { "rehearsal/script": model },
    agents: agents.map((agent) => defineAgent({ id: "main", model: "rehearsal/script", ...agent })),
    report: (error) => void reported.push(error),
    ...options,
  });
  return {
    skein,
    requests: model.requests,
    reported,
    call: async (session, tool, args = {}) => {
      await makeSure(skein, session);
      return (await skein.callTool(tool, args, session)).result;
    },
    turn: async (session, ...calls) => {
      const { reply } = await skein.session(session).send(told(...calls)).result;
      return resultsIn(reply ?? "");
    },
  };
}

/** Returns the results of the calls from the answer of the agent that made them. */
export function resultsIn(reply: string): readonly Result[] {
  const found = /^RESULTS (.*)$/s.exec(reply)?.[1];
  if (found === undefined) throw new Error(`no results: ${reply}`);
  const texts = JSON.parse(found) as readonly string[];
  return texts.map((text) => JSON.parse(text.replace(/^The tool failed: /, "")) as Result);
}

function step({ prompt }: LanguageModelV4CallOptions): ModelStep {
  const at = prompt.findLastIndex(({ role }) => role === "user");
  const results = prompt.slice(at + 1).flatMap(resultTexts);
  if (results.length > 0) return { text: `RESULTS ${JSON.stringify(results)}` };
  const text = textOf(prompt[at]);
  const calls = /DO (\[.*\])$/s.exec(text)?.[1];
  if (calls !== undefined) {
    const made = JSON.parse(calls) as readonly Told[];
    return { calls: made.map(([name, args = {}]) => ({ name, arguments: args as never })) };
  }
  if (text.endsWith("STALL")) return { text: "Wait…", stall: true };
  return { text: /SAY (.*)$/s.exec(text)?.[1] ?? "Yes." };
}

function textOf(message: LanguageModelV4Message | undefined): string {
  if (message?.role !== "user") return "";
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}

function resultTexts(message: LanguageModelV4Message): readonly string[] {
  if (message.role !== "tool") return [];
  return message.content.flatMap((part) => {
    if (part.type !== "tool-result") return [];
    const { output } = part;
    return output.type === "text" || output.type === "error-text" ? [output.value] : [JSON.stringify(output)];
  });
}

/** A read-only tool creates no session, so the calling session must already exist. */
async function makeSure(skein: Skein, context: RuntimeContext): Promise<void> {
  const handle = skein.session(context);
  if ((await handle.record()) !== null) return;
  const { userId } = context;
  const scope = typeof userId === "string" ? { userId } : {};
  await skein.store.sessions.create(scope, { key: handle.key, cwd: tmpdir() });
}
