import { present } from "../../core/present.ts";
import type { MessageDraft } from "../../core/seal.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { AcceptRequest, DeliveryTarget, RequestDigests, RootRef } from "../../runs/contract.ts";
import { digestRequest } from "../../runs/same-request.ts";
import { receiptByNotes } from "../attachments/notes.ts";
import type { BetweenDeps, Caller } from "./contract.ts";
import { answerTarget } from "./outside-channel.ts";
import type { Spawner, SpawnTerms } from "./spawn-checks.ts";
import type { SpawnNames } from "./spawn-names.ts";
import type { SpawnRequest } from "./spawn-request.ts";

/** A year: who waits for a child waits as long as it takes. */
const longestWaitMs = 365 * 86_400_000;

export interface FirstRun {
  readonly request: SpawnRequest;
  readonly terms: SpawnTerms;
  readonly names: SpawnNames;
  readonly root: RootRef;
  readonly label: string | null;
  readonly thread: DeliveryTarget | null;
  /** The folder of its attachments. */
  readonly folder: string | null;
  readonly message: MessageDraft;
}

/** A request from outside opens a root of its own; in a run it is one hop more under that run's. */
export function rootOf({ run }: Caller, { runId }: SpawnNames): RootRef {
  return run === null ? { rootId: runId, hops: 0 } : { ...run.root, hops: run.root.hops + 1 };
}

/** The first run of a child, with everything that hangs on it. */
export function firstRun(
  { clock, owner }: BetweenDeps,
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
  // Over ACP it is waited for until the agent has told its session: what ends before is the spawn's own answer.
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
      ...present({ runTimeoutSeconds, deliverTo: thread, streamTo: request.streamTo }),
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

/** What makes a spawn the same one again. Attachments count by their contents, of which a transcript keeps the sums only. */
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
