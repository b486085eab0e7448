// A process in the suite that kills ACP agents. Continues an environment until nothing in it is open, regardless of
// what happens. Usage: `acp-kill-child.ts <folder> <parents>`

import { writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { thrownText } from "../../src/core/text.ts";
import type { Skein } from "../../src/index.ts";
import { childrenEach, childrenOf, spawnArguments } from "./acp-kill-plan.ts";
import { isOutside, openWorld, user } from "./acp-kill-world.ts";

const [folder = "", count = "20"] = process.argv.slice(2);
const parents = Array.from({ length: Number(count) }, (_, at) => at);
const openStates = ["queued", "running", "waiting", "sleeping"] as const;

const placeOf = (parent: number) => ({ ...user, sessionId: `parent-${parent}` });

/** Starts everything once, no matter how often it is called. */
async function begin(skein: Skein): Promise<readonly Promise<unknown>[]> {
  const calls: Promise<unknown>[] = [];
  for (const parent of parents) {
    if (isOutside(parent)) calls.push(...childrenOf(parent).map((number) => call(skein, parent, number)));
    else
      await skein
        .session(placeOf(parent))
        .accept(`CHILDREN-OF-${parent}`, { idempotencyKey: `parent-${parent}` });
  }
  return calls;
}

async function call(skein: Skein, parent: number, number: number): Promise<void> {
  const idempotencyKey = `spawn-${number}`;
  const options = { ...placeOf(parent), idempotencyKey };
  const { result } = await skein.callTool("sessions_spawn", spawnArguments(number), options);
  writeFileSync(join(folder, "answers", `${number}.json`), JSON.stringify(result));
}

/** The fault that an agent requests. */
async function befall(skein: Skein, what: string, number: number, runId: string): Promise<void> {
  if (what === "abort") await skein.runs.abort(runId);
  else {
    const parent = placeOf(Math.floor(number / childrenEach));
    await skein.callTool("subagents", { action: "kill", target: `n${number}` }, parent);
  }
}

/** Waits until nothing is open or the process is asked to close. */
async function go(skein: Skein): Promise<"over" | "closed"> {
  let isWanted = false;
  const stop = skein.subscribe((event) => {
    if (event.type !== "run.delta") return;
    const [, what = "", number] = /@(\w+) (\d+)/.exec(event.delta) ?? [];
    if (what === "close") isWanted = true;
    else if (what !== "") void befall(skein, what, Number(number), event.runId ?? "").catch(told);
  });
  let isAnswered = false;
  const calls = await begin(skein);
  const answered = Promise.allSettled(calls).then((all) => {
    isAnswered = true;
    return all;
  });
  const isOpen = async () => !isAnswered || (await skein.runs.list({ states: openStates })).length > 0;
  while (!isWanted && (await isOpen())) await new Promise((resolve) => void setTimeout(resolve, 20));
  stop();
  await skein.close({ graceMs: isWanted ? 0 : 5000 });
  if (!isWanted) for (const each of await answered) if (each.status === "rejected") told(each.reason);
  return isWanted ? "closed" : "over";
}

function told(error: unknown): void {
  process.stderr.write(`${thrownText(error)}\n`);
}

for (;;) {
  const skein = await openWorld(folder);
  // A killed process does not save its compile cache, so the next one would compile everything again.
  flushCompileCache();
  if ((await go(skein)) === "over") break;
}
