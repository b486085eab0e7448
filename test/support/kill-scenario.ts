// The kill suite's turn, which contains everything that a turn can contain, on a real folder.

import { appendFileSync, closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { ModelStep } from "../../src/entry-testing.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { Skein, SkeinOptions, TurnResult } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";
import type { KillPoints } from "./kill-points.ts";
import { goodSummary } from "./provider-stand-in.ts";

type Note = (what: string, detail: string) => void;

/** The external effects, which are as durable as the session layer itself. */
function noteIn(folder: string, points: KillPoints): Note {
  return (what, detail) =>
    points.around(`note ${what}`, () => {
      const file = openSync(join(folder, "events.log"), "a");
      writeSync(file, `${JSON.stringify({ what, detail })}\n`);
      fsyncSync(file);
      closeSync(file);
    });
}

const long = (word: string, times = 1200) => `${word} `.repeat(times);

/**
 * Decides only from the conversation and therefore needs no memory. Its own messages are either in the conversation or
 * unknown.
 */
function decide(note: Note, { prompt, tools = [] }: LanguageModelV4CallOptions): ModelStep {
  const texts = JSON.stringify(prompt);
  const stage = stageOf(texts, tools.length > 0);
  note("asked", stage);
  return steps[stage] as ModelStep;
}

function stageOf(texts: string, hasTools: boolean): string {
  if (!hasTools) return "summary";
  if (texts.includes("call-tell")) return "final";
  if (texts.includes("From the worker")) return "noted";
  if (texts.includes("looked-result") || texts.includes("SUMMARY-OF-ALL")) return "tell";
  return texts.includes("Do the work") ? "calls" : "first";
}

const summary = `${goodSummary}\n- SUMMARY-OF-ALL`;

const usage = { input: 100, output: 10 };
const steps: Record<string, ModelStep> = {
  first: { text: long("before"), usage },
  // The usage is so high that the context is compacted before the next request.
  calls: {
    text: "Two things at once.",
    calls: [
      { name: "look", id: "call-look" },
      { name: "act", id: "call-act" },
    ],
    usage: { input: 3500, output: 10 },
  },
  summary: { text: summary, usage },
  // Waits for the reply, so that the turn has the same messages no matter how often it is killed.
  tell: {
    text: "Now the other.",
    calls: [
      {
        name: "sessions_send",
        id: "call-tell",
        arguments: {
          sessionKey: "session:other",
          message: "From the worker: it is done.",
          timeoutSeconds: 1800,
        },
      },
    ],
    usage,
  },
  final: { text: "All is done.", usage },
  noted: { text: "Noted.", usage },
};

function agentOf(note: Note) {
  return defineAgent({
    id: "main",
    model: "test/model",
    system: "You work.",
    visibility: "agent",
    tools: [
      noting(note, "look", "safe", () => `looked-result ${long("seen", 100)}`),
      noting(note, "act", "never", () => `acted-result ${long("done", 100)}`),
    ],
  });
}

function noting(note: Note, name: string, replay: "safe" | "never", answer: () => string) {
  return defineTool({
    name,
    description: `Does ${name}.`,
    replay,
    execute: (_, { toolCallId }) => {
      note(name, toolCallId);
      return answer();
    },
  });
}

const provider = {
  baseUrl: "http://127.0.0.1:9/v1",
  models: { model: { contextWindow: 4000, price: { input: 1, output: 2 } } },
};

/** `url` is the webhook's target. */
export async function openScenario(
  folder: string,
  url: string,
  points: KillPoints,
  more: Partial<SkeinOptions> = {},
): Promise<Skein> {
  const note = noteIn(folder, points);
  return createSkein({
    dir: join(folder, "skein"),
    config: {
      logging: { level: "error" },
      session: { agentToAgent: { maxPingPongTurns: 0 } },
      models: { providers: { test: provider } },
      channels: { hook: { type: "webhook", secret: "s", url } },
    },
    app: "kill",
    agents: [agentOf(note)],
    models: { "test/model": scriptedModel((request) => decide(note, request)) },
    env: {},
    report: (error) => appendFileSync(join(folder, "reports.log"), `${String(error)}\n`),
    ...more,
  });
}

/** The initial state. */
export async function prepare(skein: Skein): Promise<void> {
  await skein.session({ userId: "alice", sessionId: "other" }).send("Listen").result;
  await skein.session({ userId: "alice", sessionId: "work" }).send("Begin").result;
}

/** The turn and everything it starts. Repeating it produces the same turn. */
export async function theTurn(skein: Skein): Promise<TurnResult> {
  const turn = skein.session({ userId: "alice", sessionId: "work" }).send("Do the work", {
    idempotencyKey: "the-turn",
    deliverTo: { channel: "hook", to: "people" },
  });
  const result = await turn.result;
  for (;;) {
    const open = await skein.runs.list({ states: ["queued", "running", "waiting", "sleeping"] });
    const waiting = await skein.outbox({ states: ["queued"] });
    if (open.length === 0 && waiting.length === 0) return result;
    await new Promise((resolve) => void setTimeout(resolve, 5));
  }
}
