import type { Entry } from "../core/entries.ts";
import type { AssistantMessage, ToolCallBlock } from "../core/messages.ts";
import { present } from "../core/present.ts";
import type { RunStepsPayload } from "../protocol/run-details.ts";
import type { Run } from "../runs/contract.ts";
import { isEnded } from "../runs/states.ts";
import type { EntryPage, EntryRange } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import type { App } from "./app.ts";

type Step = RunStepsPayload["steps"][number];
/** A step that is still being filled while entries are read. */
type OpenStep = { -readonly [Name in keyof Step]: Step[Name] };

const pageSize = 200;
/** Enough for 1,000 steps with one call each. */
const maxEntries = 2000;

/**
 * Returns a run's model requests from its session's log. The log does not name runs, but each turn in it begins with a
 * run's input, and turns in one session do not overlap.
 */
export async function readRunSteps(
  { store, runs }: Pick<App, "store" | "runs">,
  run: Run,
): Promise<RunStepsPayload> {
  const { runId, session } = run;
  const reader = new StepReader(run, await runs.turnInputs(session.uid, run.startedAt ?? run.createdAt));
  let count = 0;
  let after: string | undefined = run.entryId;
  while (after !== undefined && count < maxEntries) {
    const range: EntryRange = { along: "all", after, limit: pageSize };
    const page: EntryPage | null = await store.sessions
      .page(scopeOfSession(session), session.sessionId, range)
      .catch(() => null); // The input has not been written yet.
    for (const entry of page?.entries ?? []) reader.read(entry);
    count += page?.entries.length ?? 0;
    after = page?.hasLater === true && !reader.isDone ? page.entries.at(-1)?.id : undefined;
  }
  return { runId, steps: reader.steps(), ...(after === undefined ? {} : { truncated: true }) };
}

class StepReader {
  readonly #run: Run;
  /** The run whose turn an input starts or continues, keyed by the input's entry ID. */
  readonly #turns: ReadonlyMap<string, string>;
  readonly #steps: OpenStep[] = [];
  readonly #calls = new Map<string, OpenStep["tools"][number]>();
  #isOurs = true;
  #lastAt: number | null;
  isDone = false;

  constructor(run: Run, inputs: readonly { readonly entryId: string; readonly runId: string }[]) {
    this.#run = run;
    this.#turns = new Map(inputs.map(({ entryId, runId }) => [entryId, runId]));
    this.#lastAt = run.startedAt;
  }

  read(entry: Entry): void {
    if (this.isDone) return;
    const { runId, outcome, retryOf, startedAt } = this.#run;
    const at = Date.parse(entry.timestamp) || 0;
    // A retry shares the input of the original run, whose steps come first.
    if (retryOf !== null && at < (startedAt ?? at)) return;
    const turn = this.#turns.get(entry.id) ?? (entry.id.startsWith(`${runId}-`) ? runId : null);
    if (turn !== null) this.#isOurs = turn === runId;
    if (this.#isOurs) this.#take(entry, at);
    this.isDone = entry.id === outcome?.entryId;
  }

  #take(entry: Entry, at: number): void {
    if (entry.type === "custom_message") this.#lastAt = at;
    if (entry.type !== "message") return;
    const { message } = entry;
    // An assistant message with an author is a note.
    if (message.role === "assistant" && message.provenance === undefined)
      this.#addStep(entry.id, message, at);
    else if (message.role === "toolResult") this.#endCall(entry.id, message, at);
    this.#lastAt = at;
  }

  #addStep(entryId: string, message: AssistantMessage, answeredAt: number): void {
    const { provider, model, stopReason, errorMessage, content } = message;
    const calls = content.filter((block): block is ToolCallBlock => block.type === "toolCall");
    const tools = calls.map(({ id, name }) => ({ toolCallId: id, toolName: name }));
    for (const tool of tools) this.#calls.set(tool.toolCallId, tool);
    this.#steps.push({
      step: this.#steps.length + 1,
      entryId,
      answeredAt,
      tools,
      ...present({
        model: provider && model ? `${provider}/${model}` : model,
        askedAt: this.#lastAt,
        stopReason,
        error: errorMessage,
        usage: usageOf(message),
      }),
    });
  }

  #endCall(
    entryId: string,
    { toolCallId, isError }: { readonly toolCallId?: string; readonly isError?: boolean },
    endedAt: number,
  ): void {
    const call = this.#calls.get(toolCallId ?? "");
    if (call !== undefined)
      Object.assign(call, { entryId, endedAt, ...(isError === true ? { isError } : {}) });
  }

  /**
   * Returns the steps. While the run is active and every call has its result, the last step is the request that the
   * model is currently answering.
   */
  steps(): OpenStep[] {
    const hasOpenCalls = [...this.#calls.values()].some(({ endedAt }) => endedAt === undefined);
    const isAsking =
      this.#run.state === "running" && this.#isOurs && !hasOpenCalls && !isEnded(this.#run.state);
    if (!isAsking || this.#lastAt === null) return this.#steps;
    return [...this.#steps, { step: this.#steps.length + 1, askedAt: this.#lastAt, tools: [] }];
  }
}

function usageOf({ usage, skein }: AssistantMessage): Step["usage"] | null {
  if (usage === undefined) return null;
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0, totalTokens = 0, cost } = usage;
  const costUsd = skein?.costKnown === false ? null : cost?.total;
  return { input, output, cacheRead, cacheWrite, totalTokens, ...present({ costUsd }) };
}
