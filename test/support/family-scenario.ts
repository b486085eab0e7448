// A family for the kill suites, on a real folder. Its children end in every possible way, and there are sessions of
// another agent.

import { appendFileSync } from "node:fs";
import { join } from "node:path";
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { ModelStep } from "../../src/entry-testing.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { Skein, SkeinOptions } from "../../src/index.ts";
import { createSkein, defineAgent } from "../../src/index.ts";

export const alice = { userId: "alice" } as const;
/** The whole family, or only one spawn, its announcement and the yield between them. */
export type FamilySize = "all" | "one";

type Call = NonNullable<ModelStep["calls"]>[number];

const spawn = (id: string, more: NonNullable<Call["arguments"]> = {}): Call => ({
  name: "sessions_spawn",
  id,
  arguments: { task: `TASK-${id}`, ...more },
});

const send = (id: string, to: string, timeoutSeconds: number): Call => ({
  name: "sessions_send",
  id,
  arguments: { sessionKey: `agent:other:session:${to}`, message: `QUESTION-${id}`, timeoutSeconds },
});

const first: readonly Call[] = [
  spawn("good", { label: "twin" }),
  spawn("again", { label: "twin" }),
  spawn("fails", { label: "fails" }),
  spawn("slow", { runTimeoutSeconds: 1 }),
  spawn("stuck", { label: "stuck", runTimeoutSeconds: 5 }),
  spawn("gone", { cleanup: "delete" }),
];
const files = [{ name: "notes.txt", content: "of the parent" }];
const second: readonly Call[] = [
  { name: "subagents", id: "kill", arguments: { action: "kill", target: "stuck" } },
  spawn("fore", { background: false }),
  spawn("forked", { context: "fork" }),
  spawn("files", { attachments: files, cleanup: "delete" }),
  send("waited", "near", 30),
  send("left", "far", 0),
];
const yields: readonly Call[] = [{ name: "sessions_yield", id: "yield" }];

/**
 * The calls in each step of the parent's turn. Each call is repeated until it is in the conversation with its results.
 */
const steps: Readonly<Record<FamilySize, readonly (readonly Call[])[]>> = {
  all: [first, second, yields],
  one: [[spawn("good", { label: "twin" })], yields],
};

/** Every call that starts something. */
export const setOff = [...first, ...second].flatMap(({ id, name }) =>
  name === "subagents" ? [] : [id ?? ""],
);

/** Decides only from the conversation and therefore needs no memory. */
function decide({ prompt }: LanguageModelV4CallOptions, size: FamilySize): ModelStep {
  const usage = { input: 100, output: 10 };
  const last = prompt.findLast(({ role }) => role === "user");
  const asked = JSON.stringify(last?.content ?? "");
  const done = new Set(
    prompt.flatMap(({ role, content }) =>
      role === "tool" ? content.flatMap((part) => ("toolCallId" in part ? [part.toolCallId] : [])) : [],
    ),
  );
  if (asked.includes("[Subagent Task]")) return { ...childStep(asked), usage };
  if (asked.includes("QUESTION-") && !asked.includes("which you sent"))
    return { text: "Answer of the other.", usage };
  if (asked.includes("Answer of the other.") || asked.includes("One more word.")) {
    return { text: asked.includes("which you sent") ? "Heard." : "One more word.", usage };
  }
  if (asked.includes("WAIT-for-slow") && !done.has("slow"))
    return { calls: [spawn("slow", { background: false, runTimeoutSeconds: 3 })], usage };
  if (!asked.includes("Run the family")) return { text: "Heard.", usage };
  const calls = steps[size].find((step) => step.some(({ id }) => !done.has(id ?? "")));
  return calls === undefined ? { text: "Nothing to wait for.", usage } : { text: "Next.", calls, usage };
}

function childStep(asked: string): ModelStep {
  if (asked.includes("TASK-fails")) return { error: { status: 400, message: "It cannot be done." } };
  if (asked.includes("TASK-slow") || asked.includes("TASK-stuck")) return { text: "Begun", stall: true };
  return { text: "Done by the child." };
}

const config = `logging: { level: error }
durability: full
models:
  providers:
    test: { baseUrl: "http://127.0.0.1:9/v1", models: { model: { contextWindow: 200000 } } }
agents:
  main: { model: test/model }
  other: { model: test/model }
defaults: { subagents: { maxChildren: 20, allowAgents: ["*"] } }
tools:
  sessions: { visibility: all }
  agentToAgent: { enabled: true }
session: { agentToAgent: { maxPingPongTurns: 2 } }
`;

/** The folder's `skein.yaml`. */
export const familyConfig = config;

export async function openFamily(
  folder: string,
  size: FamilySize,
  more: Partial<SkeinOptions> = {},
): Promise<Skein> {
  return createSkein({
    dir: join(folder, "skein"),
    cwd: folder,
    config: join(folder, "skein.yaml"),
    app: "family",
    agents: [
      defineAgent({ id: "main", model: "test/model" }),
      defineAgent({ id: "other", model: "test/model" }),
    ],
    models: { "test/model": scriptedModel((request) => decide(request, size)) },
    env: {},
    report: (error) => appendFileSync(join(folder, "reports.log"), `${String(error)}\n`),
    ...more,
  });
}

/** The other agent's sessions, which sending does not create. */
export async function prepareFamily(skein: Skein): Promise<void> {
  for (const sessionId of ["near", "far"]) {
    await skein.session({ ...alice, agentId: "other", sessionId }).send("Listen").result;
  }
}

/** Starts the family once, no matter how often it is called, and waits until nothing in it is open. */
export async function runFamily(skein: Skein): Promise<void> {
  await skein
    .session({ ...alice, sessionId: "parent" })
    .accept("Run the family", { idempotencyKey: "family" });
  await untilQuiet(skein);
}

const openStates = ["queued", "running", "waiting", "sleeping"] as const;

export async function untilQuiet(skein: Skein): Promise<void> {
  for (;;) {
    const open = await skein.runs.list({ states: openStates });
    const letters = await skein.outbox({ states: ["queued"] });
    if (open.length === 0 && letters.length === 0) return;
    await new Promise((resolve) => void setTimeout(resolve, 5));
  }
}
