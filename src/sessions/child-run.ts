import { isAcpKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { MessageDraft } from "../core/seal.ts";
import type { SessionRef } from "../core/session-ref.ts";
import { cutText, escapeToLine } from "../core/text.ts";
import type { AcceptRequest, DeliveryTarget, RequestDigests, RootRef, Run } from "../runs/contract.ts";
import { digestRequest } from "../runs/same-request.ts";
import type { Json, SessionMeta, SessionRecord } from "../store/contract.ts";
import type { App } from "./app.ts";
import { receiptByNotes } from "./attachments.ts";
import type { ChildRole, ChildToolLayer } from "./child-rules.ts";
import { childToolLayers } from "./child-rules.ts";
import { answerTarget } from "./delivery.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { contextOfSession } from "./runtime-context.ts";
import type { Caller } from "./session-access.ts";
import type { Spawner, SpawnTerms } from "./spawn-checks.ts";
import type { SpawnNames, SpawnRequest } from "./spawn-request.ts";

/** One year, because waiting for a child has no separate timeout. */
const longestWaitMs = 365 * 86_400_000;

export interface FirstRun {
  readonly request: SpawnRequest;
  readonly terms: SpawnTerms;
  readonly names: SpawnNames;
  readonly root: RootRef;
  readonly label: string | null;
  readonly thread: DeliveryTarget | null;
  /** The folder for the child's attachments. */
  readonly folder: string | null;
  readonly message: MessageDraft;
}

/** Returns the root. A call within a run adds a hop to that run's root. Any other call starts a new root. */
export function rootOf({ run }: Caller, { runId }: SpawnNames): RootRef {
  return run === null ? { rootId: runId, hops: 0 } : { ...run.root, hops: run.root.hops + 1 };
}

/** Returns the request for a child's first run. */
export function firstRun(
  { clock, owner }: App,
  caller: Spawner,
  session: SessionRef,
  { request, terms, names, root, label, thread, folder, message }: FirstRun,
): AcceptRequest {
  const { task, mode, cleanup, runTimeoutSeconds } = request;
  const { key, sessionId, meta } = caller.session;
  const { subagents } = terms.own;
  const archiveAfterMs = mode === "run" && cleanup === "keep" ? subagents.archiveAfterMinutes * 60_000 : 0;
  const { run } = caller;
  const by = run === null ? { owner } : { runId: run.runId };
  // Over ACP, the call waits until the agent reports its session ID. If the run ends first, its outcome is the result
  // of the call.
  const isAwaited = !request.background || request.runtime === "acp";
  const awaitedBy = isAwaited ? { by, until: clock.now() + longestWaitMs } : undefined;
  const parent = { key, sessionId, ...present({ channel: meta.channel }) };
  return {
    session,
    kind: "spawn",
    runId: names.runId,
    message,
    queueMode: "followup",
    root,
    provenance: provenanceOf(key, root),
    options: {
      origin: "inter_session",
      requestDigests: spawnDigests(request),
      ...present({
        callEntryId: caller.entryId,
        runTimeoutSeconds,
        deliverTo: thread,
        streamTo: request.streamTo,
      }),
      sequel: {
        type: "child",
        parent,
        childKey: names.key,
        task,
        ...present({ label, model: request.model, deliverTo: answerTarget(caller) }),
      },
    },
    child: {
      parentKey: key,
      spawnId: names.spawnId,
      task,
      mode,
      cleanup,
      maxChildren: subagents.maxChildren,
      ...present({
        label,
        attachments: subagents.attachments.keep ? null : folder,
        archiveAfterMs: archiveAfterMs === 0 ? null : archiveAfterMs,
      }),
    },
    ...present({ startedBy: run?.runId, awaitedBy }),
  };
}

/**
 * Computes a spawn's digests, which are equal for identical spawns. Attachments are compared by hash, because the
 * transcript does not keep their contents.
 */
export function spawnDigests({ attachments, ...rest }: SpawnRequest): RequestDigests {
  return digestRequest({ ...rest, attachments: receiptByNotes(attachments).files });
}

export function provenanceOf(parentKey: string, { rootId, hops }: RootRef) {
  return {
    kind: "inter_session",
    sourceSessionKey: parentKey,
    sourceTool: "sessions_spawn",
    rootId,
    hops,
    verbatim: true,
  };
}

const longestName = 100;

/** Derives a child's display name from its task. */
export function childName(task: string): string {
  return escapeToLine(cutText(task.trim(), longestName));
}

/**
 * Returns `orchestrator` if the child can spawn, which requires that both its lineage and its own agent allow a greater
 * depth.
 */
export function roleOf({
  depth,
  maxDepth,
  target,
}: Pick<SpawnTerms, "depth" | "maxDepth" | "target">): ChildRole {
  return depth < Math.min(maxDepth, target.maxSpawnDepth) ? "orchestrator" : "leaf";
}

/** Returns a child's metadata. Lineage and rules are fixed at creation. */
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
      // The child answers in its own thread. The parent's delivery context is used only for announcements.
      ownThread: given.thread === null ? undefined : true,
      channel: given.thread?.channel ?? meta.channel,
      delivery: delivery === undefined ? undefined : { ...delivery },
      ...overridesOf(request),
      sendPolicy: meta.sendPolicy,
    }),
  };
}

/**
 * Returns the model and thinking level for the child's runs. For an ACP agent, they are stored and passed to the agent.
 */
function overridesOf({ runtime, model, thinking, resumeSessionId }: SpawnRequest): SessionMeta {
  if (runtime === "acp") return { acp: present({ resumeSessionId, model, thinking }) };
  return present({ model, thinkingLevel: thinking });
}

/** Returns the parent's tool rules, narrowed by what the spawn requests. */
function toolLayersOf(
  { session, run }: Spawner,
  { tools }: SpawnRequest,
  { own, above }: SpawnTerms,
): readonly ChildToolLayer[] {
  const ofRun = run?.options.tools;
  return [
    { of: `agent ${own.id}`, ...own.tools },
    ...(ofRun === undefined ? [] : [{ of: "the run that spawned it", allow: ofRun }]),
    // If the parent was spawned too, the rules from that spawn.
    ...childToolLayers(session.meta, above?.subagents ?? null),
    ...(tools === undefined ? [] : [{ of: "the spawn", allow: tools.map((entry) => String(entry).trim()) }]),
  ];
}

/** The event for the `subagent_*` hooks. The context is the parent's. */
interface ChildEvent {
  readonly agentId: string;
  readonly runtime: SpawnRequest["runtime"];
  readonly task: string;
  readonly label: string | null;
  readonly ctx: RuntimeContext;
}

export function childEvent(
  { store }: Pick<App, "store">,
  parent: SessionRecord,
  { task, label, runtime }: Pick<SpawnRequest, "task" | "label" | "runtime">,
  agentId: string,
): ChildEvent {
  return { agentId, runtime, task, label: label ?? null, ctx: contextOfSession(store, parent) };
}

/** Returns a run's `subagent_ended` event, or `null` if it is not a child's run. */
export function childEnd({ runId, session, options, outcome }: Run) {
  const { sequel } = options;
  if (sequel?.type !== "child" || outcome === null) return null;
  const { parent, task, label = null } = sequel;
  const { userId, agentId, key: childSessionKey } = session;
  const ctx: RuntimeContext = { userId, sessionKey: parent.key, sessionId: parent.sessionId };
  const { state, reply = null } = outcome;
  return {
    agentId,
    runtime: isAcpKey(childSessionKey) ? "acp" : "subagent",
    task,
    label,
    childSessionKey,
    runId,
    outcome: state,
    result: reply,
    ctx,
  } as const;
}
