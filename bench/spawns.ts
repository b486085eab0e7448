import { scriptedModel } from "../src/agents/rehearsal/scripted-model.ts";
import { textOf } from "../src/core/messages.ts";
import type { Skein } from "../src/sessions/skein.ts";
import type { Figures, Job } from "./side.ts";
import { peakMemoryMb, timed, watchMemory } from "./side.ts";
import { watchSyncs } from "./syncs.ts";
import { withSkein } from "./turns.ts";

/** Sub-agents through the real tool. They are spawned, run, and announced to their parents. */

/** The maximum number of children per session that a configuration allows. */
const perParent = 20;
const wish = "Share the work out:";
const answered = { text: "Done: it rains in all of them." };

/** Calls the tool once for each requested sub-agent. Answers everything else immediately. */
function spawningModel() {
  return scriptedModel(({ prompt }) => {
    const last = prompt.at(-1);
    const content = last?.role === "user" ? last.content : [];
    const said = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
    const at = said.indexOf(wish);
    if (at === -1) return answered;
    const calls = Array.from({ length: Number(said.slice(at + wish.length)) }, (_, index) => ({
      name: "sessions_spawn",
      arguments: { task: `How is the weather in city ${index}?` },
    }));
    return { calls };
  });
}

const keyOf = (parent: number) => `agent:main:bench-${parent}`;

/**
 * Spawns this many sub-agents from as many parents as needed, all at the same time, and waits until the last
 * announcement has been answered.
 */
export async function spawn(job: Job): Promise<Figures> {
  const { count = 1, lanes } = job;
  const settings = {
    budget: { runs: 100_000 },
    defaults: { subagents: { maxChildren: perParent } },
    ...(lanes === undefined ? {} : { lanes: { main: lanes, subagent: lanes, nested: lanes } }),
  };
  const act = async (skein: Skein): Promise<Figures> => {
    await spawnAll(skein, ["agent:main:warm-up"], () => 10);
    const parents = Array.from({ length: Math.ceil(count / perParent) }, (_, index) => keyOf(index));
    const ofParent = (index: number) => Math.min(perParent, count - index * perParent);
    let ms = 0;
    let syncs = { files: 0, commits: 0 };
    const { rssMb } = await watchMemory(async () => {
      ms = await timed(async () => {
        syncs = await watchSyncs(() => spawnAll(skein, parents, ofParent));
      });
    });
    return {
      ms,
      spawnMs: ms / count,
      rssMb,
      peakMb: peakMemoryMb(),
      fileSyncs: syncs.files / count,
      commitSyncs: syncs.commits / count,
      ...(await counted(skein, parents, count)),
    };
  };
  return withSkein(job, spawningModel(), act, settings);
}

async function spawnAll(
  skein: Skein,
  parents: readonly string[],
  ofParent: (index: number) => number,
): Promise<void> {
  const turns = parents.map((sessionKey, index) =>
    skein.session({ sessionKey }).send(`${wish} ${ofParent(index)}`),
  );
  await Promise.all(turns.map(({ result }) => result));
  // One after another, because each waiting process checks again whenever a run ends.
  for (const { runId } of turns) await skein.settled(runId);
}

/** Counts sub-agents without an announcement and duplicate announcements in the parents' sessions. */
async function counted(
  skein: Skein,
  parents: readonly string[],
  count: number,
): Promise<{ lost: number; twice: number }> {
  const told: string[] = [];
  for (const sessionKey of parents) {
    const record = await skein.session({ sessionKey }).record();
    const range = { along: "branch", limit: 1000 } as const;
    const page = await skein.store.sessions.page({}, record?.sessionId ?? "", range);
    for (const entry of page?.entries ?? []) {
      if (entry.type !== "message" || entry.message.role !== "user") continue;
      // Announcements that arrive together form one message.
      const text = textOf(entry.message.content);
      told.push(...Array.from(text.matchAll(/has ended: (\S+)/g), ([, name = ""]) => name));
    }
  }
  const once = new Set(told).size;
  return { lost: count - once, twice: told.length - once };
}
