import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ScriptedModel } from "../src/agents/rehearsal/scripted-model.ts";
import { defineAgent } from "../src/agents/tools/define-agent.ts";
import { defineTool } from "../src/agents/tools/define-tool.ts";
import { openSkein } from "../src/app.ts";
import type { Skein } from "../src/sessions/skein.ts";
import { openPostgres } from "../src/store/postgres/open-postgres.ts";
import { bareConversation } from "./bare-loop.ts";
import { model, plainModel, textOf, weatherIn, weatherParameters } from "./scripted.ts";
import type { Figures, Job } from "./side.ts";
import { timed, watchMemory } from "./side.ts";
import type { Syncs } from "./syncs.ts";
import { syncTime, watchSyncs } from "./syncs.ts";

/** Complete turns: a message is accepted, the model is called, and the result is stored. */

const modelName = "rehearsal/script";
const warmUp = 200;

const agent = defineAgent({
  id: "main",
  system: "You know the weather.",
  model: modelName,
  tools: [
    defineTool({
      name: "weather",
      description: "The weather of a city.",
      parameters: weatherParameters,
      execute: (args) => weatherIn(String((args as { city?: unknown }).city)),
    }),
  ],
});

/** `settings` are additional configuration settings. */
export async function withSkein<T>(
  job: Job,
  script: ScriptedModel,
  act: (skein: Skein) => Promise<T>,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<T> {
  const { folder, url, durability = "full", lanes, perProcess = null, kind, workers } = job;
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "skein.json");
  const told = {
    durability,
    ...(lanes === undefined ? {} : { lanes: { main: lanes, perProcess } }),
    ...settings,
  };
  writeFileSync(config, JSON.stringify(told));
  const backend = url === undefined ? null : await openPostgres({ url });
  const skein = await openSkein({
    ...(backend === null ? {} : { backend }),
    workers: workers !== 0,
    app: "bench",
    dir: join(folder, "store"),
    memory: kind === "memory",
    config,
    agents: [agent],
    models: { [modelName]: script },
    env: {},
  });
  try {
    return await act(skein);
  } finally {
    await skein.close();
    await backend?.close();
  }
}

/**
 * Runs turns one after another, up to `turns` per session. Each is followed by the same turn with only the AI SDK. Code
 * and sessions are warm: other sessions had turns before, and each of these has had its first turn. The time that a
 * turn waits for the disk is subtracted.
 */
export async function turn(job: Job): Promise<Figures> {
  const { count = 1, turns = 1, folder, kind } = job;
  const sessions = Math.ceil(count / turns);
  const script = model();
  const first = Math.ceil(warmUp / turns);
  const bare = Array.from({ length: first + sessions }, () => bareConversation(script));
  return withSkein(job, script, async (skein) => {
    const sayTo = (place: number, round: number) =>
      skein.session({ sessionKey: keyOf(place) }).send(textOf(round)).result;
    const say = (round: number) => sayTo(first + (round % sessions), round);
    const sayBare = (round: number) => bare[first + (round % sessions)]?.say(textOf(round));
    for (let round = 0; round < warmUp; round++) {
      await sayTo(round % first, round);
      await bare[round % first]?.say(textOf(round));
    }
    for (let round = 0; round < sessions; round++) {
      await say(round);
      await sayBare(round);
    }
    const [ours, bares]: [TimedTurn[], TimedTurn[]] = [[], []];
    for (let round = 0; round < count; round++) {
      ours.push(await timedTurn(() => say(round)));
      bares.push(await timedTurn(() => sayBare(round)));
    }
    const bareMs = median(bares, ({ ms }) => ms);
    const ms = median(ours, (each) => each.ms);
    const figures = {
      ms,
      bareMs,
      addedMs: ms - bareMs,
      addedBesideSyncMs: median(ours, (each) => each.ms - each.waitedMs) - bareMs,
      addedCpuMs: median(ours, ({ cpuMs }) => cpuMs) - median(bares, ({ cpuMs }) => cpuMs),
    };
    if (kind === "memory") return figures;
    return {
      ...figures,
      waitedMs: median(ours, ({ waitedMs }) => waitedMs),
      fileSyncs: median(ours, ({ files }) => files),
      commitSyncs: median(ours, ({ commits }) => commits),
      syncMs: await syncTime(folder, 100),
    };
  });
}

type TimedTurn = Syncs & { readonly ms: number; readonly cpuMs: number };

/** Includes this thread's CPU time, which other load on the machine does not affect. */
async function timedTurn(work: () => unknown): Promise<TimedTurn> {
  let ms = 0;
  const before = process.threadCpuUsage();
  const syncs = await watchSyncs(async () => {
    ms = await timed(work);
  });
  const { user, system } = process.threadCpuUsage(before);
  return { ...syncs, ms, cpuMs: (user + system) / 1000 };
}

/**
 * Sends one message to each of many new sessions, all at the same time, and waits until the last one has been answered.
 */
export async function crowd(job: Job): Promise<Figures> {
  const { count = 1 } = job;
  return withSkein(job, plainModel(), async (skein) => {
    for (let round = 0; round < 20; round++)
      await skein.session({ sessionKey: keyOf(-1) }).send(textOf(round)).result;
    const keys = Array.from({ length: count }, (_, index) => keyOf(index));
    const sendAll = () =>
      Promise.allSettled(
        keys.map((sessionKey, index) => skein.session({ sessionKey }).send(textOf(index)).result),
      );
    let lost = 0;
    const { result: ms, rssMb } = await watchMemory(() =>
      timed(async () => {
        const ended = await sendAll();
        lost = ended.filter(({ status }) => status === "rejected").length;
      }),
    );
    for (const sessionKey of keys) {
      const record = await skein.session({ sessionKey }).record();
      const context = await skein.store.sessions.context({}, record?.sessionId ?? "");
      if (context?.messages.length !== 2) lost += 1;
    }
    return { ms, turnMs: ms / count, lost, rssMb };
  });
}

const keyOf = (index: number) => `agent:main:bench-${index}`;

function median<T>(all: readonly T[], figure: (each: T) => number): number {
  return all.map(figure).toSorted((a, b) => a - b)[all.length >> 1] ?? 0;
}
