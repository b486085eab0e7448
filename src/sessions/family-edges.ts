import { isSilentReply, noReply } from "../core/announcement.ts";
import { mapConcurrently } from "../core/concurrency.ts";
import { resultEntryId } from "../core/hashed-id.ts";
import { present } from "../core/present.ts";
import type { FamilyEdge } from "../protocol/family.ts";
import type { Run, RunStore } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { Show } from "./run-views.ts";
import { previewInput, previewText } from "./run-views.ts";

export interface EdgeSource {
  readonly runs: Pick<RunStore, "replyWait">;
  /** Returns the text as its reader is allowed to see it. */
  readonly show: Show;
}

const readsAtATime = 8;

/** Derives the messages exchanged between a family's sessions from the sessions' runs and lineage. */
export class FamilyEdges {
  readonly #nodes: ReadonlyMap<string, SessionRecord>;
  readonly #nodesByKey: ReadonlyMap<string, SessionRecord>;
  readonly #runs: ReadonlyMap<string, Run>;
  readonly #source: EdgeSource;

  /** `nodes` is keyed by uid. */
  constructor(nodes: ReadonlyMap<string, SessionRecord>, runs: readonly Run[], source: EdgeSource) {
    this.#nodes = nodes;
    this.#nodesByKey = new Map([...nodes.values()].map((each) => [each.key, each]));
    this.#runs = new Map(runs.map((run) => [run.runId, run]));
    this.#source = source;
  }

  /** Returns the edges, oldest first. */
  async read(): Promise<FamilyEdge[]> {
    const inputs = [...this.#runs.values()].flatMap((run) => this.#edgeOfInput(run) ?? []);
    const replies = await mapConcurrently([...this.#runs.values()], readsAtATime, (run) =>
      this.#edgeOfAwaitedReply(run),
    );
    const spawned = new Set(inputs.flatMap(({ kind, toKey }) => (kind === "spawn" ? [toKey] : [])));
    const kin = [...this.#nodes.values()].flatMap((node) => [
      ...this.#edgeOfFork(node),
      ...(spawned.has(node.key) ? [] : this.#edgeOfForgottenSpawn(node)),
    ]);
    return [...inputs, ...replies.flatMap((edge) => edge ?? []), ...kin].sort((a, b) => a.at - b.at);
  }

  /**
   * Returns the beginning of a run's input. Returns an empty string if the input came from a session outside the
   * family, because generated text names its source.
   */
  preview(run: Run): string {
    const { show } = this.#source;
    if (run.provenance?.sourceSessionKey !== undefined && this.#sourceOf(run) === null) return "";
    const cause = this.#causeOf(run);
    return cause === null ? previewInput(run, show) : previewText(replyOf(cause), show);
  }

  #edgeOfInput(run: Run): FamilyEdge | null {
    const { runId, createdAt, options } = run;
    const from = this.#sourceOf(run);
    const to = this.#nodes.get(run.session.uid);
    if (from === null || to === undefined) return null;
    const cause = this.#causeOf(run);
    return present({
      kind: kindOfInput(run, cause),
      fromKey: from.key,
      // A session that received the key through a reset does not contain the entry.
      fromEntryId: createdAt < from.createdAt ? null : (options.callEntryId ?? cause?.outcome?.entryId),
      toKey: to.key,
      toEntryId: run.startedAt !== null || run.state === "merged" ? run.entryId : null,
      runId,
      at: createdAt,
      preview: this.preview(run),
    });
  }

  /**
   * Returns the session that the input came from, or `null` if that session has been reset since. A child stays linked
   * to its parent's key, so its first input is attributed to the session that has the key now.
   */
  #sourceOf({ provenance, kind, createdAt, startedBy, session }: Run): SessionRecord | null {
    const from = this.#nodesByKey.get(provenance?.sourceSessionKey ?? "");
    if (from === undefined || from.uid === session.uid) return null;
    if (kind === "spawn") return from;
    const starter = startedBy === null ? undefined : this.#runs.get(startedBy);
    const isSame = starter === undefined ? createdAt >= from.createdAt : starter.session.uid === from.uid;
    return isSame ? from : null;
  }

  /** Returns the run whose end caused this input. */
  #causeOf({ provenance }: Run): Run | null {
    const [, runId] = /^(?:announce|ping_pong):(.+)$/.exec(provenance?.deliveryId ?? "") ?? [];
    return runId === undefined ? null : (this.#runs.get(runId) ?? null);
  }

  /**
   * Returns the edge for a reply that was returned as the result of the tool call that waited for it. All other replies
   * arrive as input.
   */
  async #edgeOfAwaitedReply(run: Run): Promise<FamilyEdge | null> {
    const { runId, kind, startedBy, outcome, endedAt } = run;
    if (startedBy === null || outcome === null || endedAt === null) return null;
    if (kind !== "send" && kind !== "spawn") return null;
    const to = this.#sourceOf(run);
    const from = this.#nodes.get(run.session.uid);
    if (to === null || from === undefined) return null;
    if ((await this.#source.runs.replyWait(runId))?.state !== "taken") return null;
    return present({
      kind: "reply" as const,
      fromKey: from.key,
      fromEntryId: outcome.entryId,
      toKey: to.key,
      toEntryId: resultEntryId(runId),
      runId,
      at: endedAt,
      preview: previewText(replyOf(run), this.#source.show),
    });
  }

  #edgeOfFork({ key, createdAt, meta: { forkedFrom } }: SessionRecord): FamilyEdge[] {
    if (forkedFrom === undefined) return [];
    const from = [...this.#nodes.values()].find(({ sessionId }) => sessionId === forkedFrom.sessionId);
    if (from === undefined) return [];
    // A fork keeps the IDs of the entries it copies.
    const entry = present({ fromEntryId: forkedFrom.entryId, toEntryId: forkedFrom.entryId });
    return [{ kind: "fork", fromKey: from.key, ...entry, toKey: key, at: createdAt, preview: "" }];
  }

  /**
   * Returns the edge for a spawn whose run has been deleted. Runs are deleted after 30 days, but the lineage is kept.
   */
  #edgeOfForgottenSpawn({ key, createdAt, meta }: SessionRecord): FamilyEdge[] {
    const from = this.#nodesByKey.get(meta.spawnedBy ?? "");
    if (from === undefined) return [];
    const preview = previewText(meta.displayName ?? "", this.#source.show);
    return [{ kind: "spawn", fromKey: from.key, toKey: key, at: createdAt, preview }];
  }
}

function replyOf({ outcome }: Run): string {
  const text = outcome?.reply ?? outcome?.error ?? "";
  return isSilentReply(text) ? noReply : text;
}

/** Returns the kind of an input. A reply to a message arrives as a turn in the exchange or as an announcement. */
function kindOfInput({ kind, provenance }: Run, cause: Run | null): FamilyEdge["kind"] {
  if (kind === "spawn") return "spawn";
  if (kind === "ping_pong") return "reply";
  if (kind !== "announce") return "send";
  const isOfSend = provenance?.sourceTool === "sessions_send";
  return isOfSend && cause !== null && cause.kind !== "ping_pong" ? "reply" : "announce";
}
