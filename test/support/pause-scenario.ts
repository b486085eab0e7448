// A turn that stops at a gate so that its process can be paused there: during an answer, in a tool, or before an
// approval.

import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { Clock, SkeinOptions } from "../../src/index.ts";
import { defineAgent, defineTool } from "../../src/index.ts";

export type PauseMode = "streaming" | "tool" | "approval";

export interface PauseScenario {
  readonly folder: string;
  readonly mode: PauseMode;
  /** The process's name in the external effects. */
  readonly who: string;
  /** Whether the process has reached the gate. */
  atGate(): void;
  readonly clock?: Clock;
}

/** An owner that is silent for this long has lost its runs. */
const leaseMs = 30_000;

export function pauseOptions(scenario: PauseScenario): SkeinOptions {
  const { folder, mode, who } = scenario;
  const model = scriptedModel(({ prompt }) => {
    const texts = JSON.stringify(prompt);
    const hasResult = texts.includes("tool-result");
    if (mode === "streaming" || hasResult) return { text: `The answer of ${who}.` };
    return { text: "One moment.", calls: [{ name: mode === "tool" ? "act" : "ask", id: "call-1" }] };
  });
  return {
    dir: join(folder, "skein"),
    config: null,
    leaseMs,
    ...(scenario.clock === undefined ? {} : { clock: scenario.clock }),
    env: {},
    models: { "rehearsal/script": gated(model, scenario) },
    app: "pause",
    agents: [defineAgent({ id: "main", model: "rehearsal/script", tools: toolsOf(scenario) })],
    report: (error) => appendFileSync(join(folder, "reports.log"), `${who}: ${String(error)}\n`),
  };
}

function toolsOf(scenario: PauseScenario) {
  const done = (name: string) =>
    appendFileSync(join(scenario.folder, "done.log"), `${name} ${scenario.who}\n`);
  return [
    defineTool({
      name: "act",
      description: "Acts once.",
      execute: async () => {
        done("act");
        await gate(scenario);
        return "acted";
      },
    }),
    defineTool({
      name: "ask",
      description: "Asks first.",
      replay: "safe",
      approval: true,
      execute: () => {
        done("ask");
        return "asked";
      },
    }),
  ];
}

/** Opens once the file exists. */
async function gate({ folder, atGate }: PauseScenario): Promise<void> {
  if (existsSync(join(folder, "open"))) return;
  atGate();
  while (!existsSync(join(folder, "open"))) await sleep(5);
}

/** Stops after the first text of an answer. */
function gated(model: LanguageModelV4, scenario: PauseScenario): LanguageModelV4 {
  if (scenario.mode !== "streaming") return model;
  return {
    ...model,
    doStream: async (options) => {
      const { stream } = await model.doStream(options);
      let words = 0;
      const stop = new TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart>({
        transform: async (part, controller) => {
          controller.enqueue(part);
          if (part.type === "text-delta" && ++words === 2) await gate(scenario);
        },
      });
      return { stream: stream.pipeThrough(stop) };
    },
  };
}
