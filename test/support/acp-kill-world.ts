// The folder for the suite that kills ACP agents, with a Skein instance whose parents spawn the children that the seed
// plans.

import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JSONObject, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { openSkein } from "../../src/app.ts";
import type { ModelStep } from "../../src/entry-testing.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { Skein, SkeinOptions } from "../../src/index.ts";
import { defineAgent } from "../../src/index.ts";
import { scriptedAgent } from "./acp/script.ts";
import { childrenOf, spawnArguments } from "./acp-kill-plan.ts";
import { supportProgram } from "./programs.ts";

export const user = { userId: "alice" } as const;

/** Set in the environment of every agent process in this folder. */
export const markOf = (folder: string): string => `ACP_KILL=${folder}`;

/** Every third parent is called externally, and the others are called by a model. */
export const isOutside = (parent: number): boolean => parent % 3 === 2;

const program = supportProgram("acp-kill-agent");

export function makeWorld(folder: string): void {
  for (const name of ["work", "sessions", "blows", "answers"]) mkdirSync(join(folder, name));
  const env = { ACP_KILL: folder, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "" };
  const own = (name: string) => ({ command: process.execPath, args: [program, folder, name], env });
  const fork = { fork: true } as const;
  const permission = { permission: { id: "p1", title: "Look" } };
  const turns = [[{ think: "Hm." }, fork, { say: "Begun. " }, permission, { say: "Done." }]];
  const official = scriptedAgent({ sessionsFile: join(folder, "official.json"), turns });
  const agents = {
    lean: own("lean"),
    stubborn: own("stubborn"),
    early: own("early"),
    official: { ...official, env },
  };
  const acp = { permissions: "allow", maxConcurrentSessions: 12, agents };
  const models = { providers: { test: { baseUrl: "http://127.0.0.1:9/v1", models: { model: {} } } } };
  const config = { logging: { level: "error" }, models, lanes: { subagent: 6 }, acp };
  writeFileSync(join(folder, "skein.yaml"), JSON.stringify(config));
}

export async function openWorld(folder: string, more: Partial<SkeinOptions> = {}): Promise<Skein> {
  return openSkein({
    dir: join(folder, "skein"),
    cwd: join(folder, "work"),
    config: join(folder, "skein.yaml"),
    app: "acp-kill",
    agents: [defineAgent({ id: "main", model: "test/model" })],
    models: { "test/model": scriptedModel(decide) },
    env: { PATH: process.env.PATH, HOME: folder },
    report: (error) => appendFileSync(join(folder, "reports.log"), `${String(error)}\n`),
    quiet: true,
    ...more,
  });
}

/**
 * A parent spawns its children, waits for them, and receives their results. All decisions are based on the
 * conversation.
 */
function decide({ prompt }: LanguageModelV4CallOptions): ModelStep {
  const [, parent] = /CHILDREN-OF-(\d+)/.exec(JSON.stringify(prompt)) ?? [];
  const done = new Set(
    prompt.flatMap(({ role, content }) =>
      role === "tool" ? content.flatMap((part) => ("toolCallId" in part ? [part.toolCallId] : [])) : [],
    ),
  );
  const spawns = childrenOf(Number(parent)).map((number) => ({
    name: "sessions_spawn",
    id: `spawn-${number}`,
    arguments: spawnArguments(number) as JSONObject,
  }));
  const open = spawns.filter(({ id }) => !done.has(id));
  if (parent === undefined) return { text: "Heard." };
  if (open.length > 0) return { text: "Next.", calls: open };
  return done.has("yield") ? { text: "Heard." } : { calls: [{ name: "sessions_yield", id: "yield" }] };
}
