import { present } from "../../core/present.ts";
import { cutText, escapeToLine } from "../../core/text.ts";
import type { DeliveryTarget } from "../../runs/contract.ts";
import type { Json, SessionMeta } from "../../store/contract.ts";
import type { ChildRole, ChildToolLayer } from "./child-tools.ts";
import { childToolLayers } from "./child-tools.ts";
import type { Spawner, SpawnTerms } from "./spawn-checks.ts";
import type { SpawnRequest } from "./spawn-request.ts";

/** What lists call it, where it has no label. */
const longestName = 100;

/** What a child is called by its task. */
export function childName(task: string): string {
  return escapeToLine(cutText(task.trim(), longestName));
}

/** It can spawn where its lineage may go deeper and its own agent lets it. */
export function roleOf({
  depth,
  maxDepth,
  target,
}: Pick<SpawnTerms, "depth" | "maxDepth" | "target">): ChildRole {
  return depth < Math.min(maxDepth, target.maxSpawnDepth) ? "orchestrator" : "leaf";
}

/** What is known of a child from its first moment on. Lineage and rules are written here, once. */
export function childMeta(
  caller: Spawner,
  request: SpawnRequest,
  terms: SpawnTerms,
  given: { readonly rootId: string; readonly thread: DeliveryTarget | null; readonly label: string | null },
): SessionMeta {
  const { meta, key } = caller.session;
  const delivery = given.thread ?? meta.delivery;
  return {
    spawnedBy: key,
    spawnDepth: terms.depth,
    spawnLimit: terms.maxDepth,
    role: roleOf(terms),
    spawnMode: request.mode,
    rootId: given.rootId,
    toolLayers: toolLayersOf(caller, request, terms) as unknown as Json,
    ...present({
      label: given.label,
      displayName: childName(request.task),
      sandboxed: terms.sandboxed ? true : undefined,
      // What it says there is its own; the delivery of its parent it only has for announcements.
      ownThread: given.thread === null ? undefined : true,
      channel: given.thread?.channel ?? meta.channel,
      delivery: delivery === undefined ? undefined : { ...delivery },
      ...overridesOf(request),
      sendPolicy: meta.sendPolicy,
    }),
  };
}

/** A model and a level of ours hold for its runs; what the agent of somebody else is to be told is kept for it. */
function overridesOf({ runtime, model, thinking, resumeSessionId }: SpawnRequest): SessionMeta {
  if (runtime === "acp") return { acp: present({ resumeSessionId, model, thinking }) };
  return present({ model, thinkingLevel: thinking });
}

/** All that the parent may use by the rules that hold for it, and of that what the spawn asks for. */
function toolLayersOf(
  { session, run }: Spawner,
  { tools }: SpawnRequest,
  { own, above }: SpawnTerms,
): readonly ChildToolLayer[] {
  const ofRun = run?.options.tools;
  return [
    { of: `agent ${own.id}`, ...own.tools },
    ...(ofRun === undefined ? [] : [{ of: "the run that spawned it", allow: ofRun }]),
    // What holds for the parent because it was spawned itself, by the word of the agent that did it.
    ...childToolLayers(session.meta, above?.subagents ?? null),
    ...(tools === undefined ? [] : [{ of: "the spawn", allow: tools.map((entry) => String(entry).trim()) }]),
  ];
}
