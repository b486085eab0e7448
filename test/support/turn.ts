import type { Tool, ToolOutput, Turn, TurnEnd, TurnEvent, TurnModel } from "../../src/agents/contract.ts";
import { createLoop } from "../../src/agents/loop/loop.ts";
import type { ToolCallBlock, Usage } from "../../src/core/messages.ts";
import { guardedAppend } from "../../src/entry-store.ts";
import type { Entry, MessageDraft } from "../../src/index.ts";
import { HookRegistry, prepareTranscript, SkeinError } from "../../src/index.ts";
import { createMemoryStore } from "../../src/store/memory/store.ts";
import { estimateTokens } from "../../src/transcript/estimate-tokens.ts";
import { lineOf } from "./text.ts";

/** A turn on a real store with the real guard, a stopped clock, and sleeps that take no time. */

export const scope = { userId: "ann", agentId: "main" };
const stallMs = 120_000;
/** How often a turn's port can free space. */
const mostRoom = 3;

export interface TurnOptions {
  readonly model: TurnModel;
  readonly tools?: readonly Tool[];
  readonly limits?: Partial<Turn["limits"]>;
  readonly with?: Partial<Turn>;
  /** Input during the turn, with one item for each time the turn checks. `null` means no input. */
  readonly meanwhile?: (MessageDraft | null)[];
  /** Whether each successive request exceeds the threshold. If absent, none does. */
  readonly over?: boolean[];
  readonly random?: () => number;
}

export async function openTurn(options: TurnOptions) {
  const store = createMemoryStore();
  const hooks = new HookRegistry((_, error) => {
    throw error;
  });
  const { sessionId } = await store.sessions.create(scope, {
    key: "agent:main:main",
    sessionId: "s",
    cwd: "/work",
  });
  const abort = new AbortController();
  const events: TurnEvent[] = [];
  const charged: Usage[] = [];
  const rooms: string[] = [];
  const sleeps: number[] = [];
  const seen: string[] = [];
  const time = new StillTime(stallMs, sleeps);
  const over = [...(options.over ?? [])];
  const meanwhile = [...(options.meanwhile ?? [])];
  let fence: (() => boolean) | null = null;

  const say = async (message: MessageDraft) => {
    if (fence !== null && !fence()) throw new SkeinError("fenced", { sessionId });
    const { entries, refused } = await guardedAppend({ store, hooks }, scope, sessionId, message);
    return { entry: entries.at(-1) ?? null, refused };
  };
  const turn: Turn = {
    about: {
      runId: "run-1",
      ...scope,
      sessionKey: "agent:main:main",
      sessionId,
      cwd: "/work",
    },
    signal: abort.signal,
    model: options.model,
    system: "You are of use.",
    thinkingLevel: "off",
    tools: options.tools ?? [],
    state: {},
    limits: { maxSteps: 50, stallMs, maxRetries: 3, ...options.limits },
    outputSchema: null,
    open: null,
    request: async () => {
      const context = await store.sessions.context(scope, sessionId);
      if (context === null) throw new Error("the session is gone");
      const { messages, changes } = await prepareTranscript(context.messages, options.model.policy, {
        entryIds: context.entryIds,
      });
      const tokens = estimateTokens(messages);
      return { messages, context, changes, tokens, isOverThreshold: over.shift() ?? false };
    },
    say,
    note: async (draft) => {
      await store.sessions.append(scope, sessionId, [{ draft }]);
    },
    takeInput: async () => {
      const message = meanwhile.shift() ?? null;
      if (message !== null) await say(message);
      return message !== null;
    },
    check: async () => {
      seen.push("check");
    },
    charge: async (usage) => {
      charged.push(usage);
    },
    makeRoom: async (_, why) => {
      rooms.push(why);
      return rooms.length <= mostRoom;
    },
    approve: async () => ({ approved: true, note: "" }),
    hooks: {
      beforeToolCall: async (call) => ({ arguments: call.arguments, block: null }),
      afterToolCall: async () => undefined,
      llmInput: async () => undefined,
      llmOutput: async () => undefined,
    },
    emit: (event) => void events.push(event),
    ...options.with,
  };
  const loop = createLoop({ clock: time, random: options.random ?? (() => 0.5), sleep: time.sleep });
  const entries = async (): Promise<readonly Entry[]> =>
    (await store.sessions.page(scope, sessionId, { along: "branch", limit: 1000 }))?.entries ?? [];
  return {
    store,
    hooks,
    turn,
    events,
    charged,
    rooms,
    sleeps,
    seen,
    time,
    abort: (reason: unknown) => abort.abort(reason),
    fenceOff: (holds: () => boolean) => {
      fence = holds;
    },
    say,
    entries,
    run: (): Promise<TurnEnd> => loop.run(turn),
    /** Returns one line per message. */
    lines: async () => (await entries()).map(lineOf),
  };
}

/** Time advances only when the code waits for a retry or when a test lets a silence pass. */
class StillTime {
  readonly #stallMs: number;
  readonly #sleeps: number[];
  readonly #waiting = new Set<() => void>();
  #now = Date.UTC(2026, 0, 1);

  constructor(stall: number, sleeps: number[]) {
    this.#stallMs = stall;
    this.#sleeps = sleeps;
  }

  now(): number {
    return this.#now;
  }

  /** Makes the stream's current silence last until every timeout has expired. */
  hush(): void {
    this.#now += this.#stallMs;
    for (const wake of [...this.#waiting]) wake();
  }

  readonly sleep = (ms: number, signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    const isWatch = ms === this.#stallMs;
    if (!isWatch) {
      this.#sleeps.push(ms);
      this.#now += ms;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const wake = () => {
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", () => {
        this.#waiting.delete(wake);
        reject(signal.reason);
      });
    });
  };
}

/** A tool with the given behavior. By default, it returns its input. */
export function tool(
  name: string,
  execute: (args: unknown, call: Parameters<Tool["execute"]>[1]) => Promise<ToolOutput> = async (args) => ({
    content: [{ type: "text", text: `${name} ${JSON.stringify(args)}` }],
  }),
  more: Partial<Tool> = {},
): Tool {
  return {
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: "object", properties: { what: { type: "string" } } },
    replay: "never",
    groups: [],
    needsApproval: () => false,
    check: async (args) => ({ args }),
    execute,
    ...more,
  };
}

export const text = (said: string): ToolOutput => ({ content: [{ type: "text", text: said }] });

export const openCall = (id: string, name: string, args: Record<string, unknown> = {}): ToolCallBlock => ({
  type: "toolCall",
  id,
  name,
  arguments: args,
});
