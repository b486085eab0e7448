import { KeyedMutex } from "../core/concurrency.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import type { SessionRef } from "../core/session-ref.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import { cutText, escapeToLine, thrownText } from "../core/text.ts";
import { redactedText } from "../core/tombstone.ts";
import type { Run } from "../runs/contract.ts";
import { findConflict } from "../runs/same-request.ts";
import type { Scope, SessionInit, SessionRecord } from "../store/contract.ts";
import type { App } from "./app.ts";
import { withBlobs } from "./append.ts";
import type { ChildFiles } from "./attachment-files.ts";
import { placeFiles } from "./attachment-files.ts";
import { firstMessage } from "./child-rules.ts";
import type { FirstRun } from "./child-run.ts";
import { childEvent, childMeta, firstRun, provenanceOf, rootOf, spawnDigests } from "./child-run.ts";
import { withWorkingDirectory } from "./run-session.ts";
import type { Caller } from "./session-access.ts";
import type { Spawner, SpawnTerms } from "./spawn-checks.ts";
import { checkSpawn, limitRefusal, targetAgentId } from "./spawn-checks.ts";
import type { SpawnNames, SpawnRefusal, SpawnRequest } from "./spawn-request.ts";
import {
  forbidden,
  isGivenLabel,
  markedLabel,
  numberedLabel,
  requestProblem,
  sandboxProblem,
  spawnNames,
} from "./spawn-request.ts";
import type { SpawnResult } from "./spawn-result.ts";
import { acpResult, spawnResult } from "./spawn-result.ts";

const longestTitle = 100;

/** Creates a session for a task, together with its first run. A retried call returns the same child. */
export async function spawnChild(app: App, caller: Caller, request: SpawnRequest): Promise<SpawnResult> {
  const unfit = requestProblem(request);
  if (unfit !== null) return { ...unfit };
  if (caller.session === null) return { status: "error", code: "no_session", error: "No session context" };
  const isAcp = request.runtime === "acp";
  if (isAcp && app.acp.names.length === 0) return { ...noAcp(caller, request) };
  const targetId = targetAgentId(app, caller, request);
  if (typeof targetId !== "string") return { ...targetId };
  const spawner: Spawner = { ...caller, session: await withWorkingDirectory(app, caller.session) };
  const names = spawnNames(spawner.session, caller.callId, targetId, request.runtime);
  const run = await spawnsOf(app).run(
    names.runId,
    async () =>
      (await app.runs.get(names.runId, caller.userId)) ??
      (await new Spawning(app, spawner, request, names).make()),
  );
  if ("status" in run) return { ...run };
  const conflict = spawnConflict(run, request, names);
  if (conflict !== null) return { status: "error", code: conflict.code, error: conflict.message };
  return (isAcp ? acpResult : spawnResult)(app, caller, request, names, run);
}

/** Returns `null` if this call is a retry of the one that spawned the child. */
function spawnConflict(run: Run, request: SpawnRequest, names: SpawnNames): SkeinError | null {
  if (run.options.requestDigests !== undefined) return findConflict(run, { digests: spawnDigests(request) });
  const difference = differenceFrom(run, request, names);
  return difference === null
    ? null
    : new SkeinError("idempotency_conflict", { runId: run.runId, difference });
}

/**
 * Compares a request with a run that has no digests: a run from an earlier version, or one whose input was redacted.
 * Redacted values are not compared.
 */
function differenceFrom(
  { options: { sequel } }: Run,
  request: SpawnRequest,
  names: SpawnNames,
): string | null {
  if (sequel?.type !== "child" || sequel.task === redactedText) return null;
  const { task, label, model } = sequel;
  if (task !== request.task) return "a different task";
  const isSameLabel =
    label === undefined || request.label === undefined
      ? label === request.label
      : label === redactedText || isGivenLabel(label, request.label, names.spawnId);
  if (!isSameLabel) return "a different label";
  return model === request.model ? null : "a different model";
}

/** Serializes retries of one call so that a retry finds the first call's child and does not undo it. */
const queues = new WeakMap<object, KeyedMutex>();

function spawnsOf(app: App): KeyedMutex {
  const queue = queues.get(app) ?? new KeyedMutex();
  queues.set(app, queue);
  return queue;
}

function noAcp({ sandboxed }: Caller, request: SpawnRequest): SpawnRefusal {
  const error = 'runtime="acp" is not available because no ACP agents are configured (acp.agents)';
  return sandboxProblem(request, sandboxed, false) ?? { status: "error", code: "acp_unavailable", error };
}

/** Creates one child. If a step fails before the run is accepted, everything created for the child is removed. */
class Spawning {
  readonly #app: App;
  readonly #caller: Spawner;
  readonly #request: SpawnRequest;
  readonly #names: SpawnNames;
  /** The ID of the thread that was opened for the child. */
  #opened: string | null = null;

  constructor(app: App, caller: Spawner, request: SpawnRequest, names: SpawnNames) {
    this.#app = app;
    this.#caller = caller;
    this.#request = request;
    this.#names = names;
  }

  async make(): Promise<Run | SpawnRefusal> {
    const left = await leftFork(this.#app, this.#caller, this.#request, this.#names);
    if (left !== null && "status" in left) return left;
    const made = await this.#attempt(left);
    if ("status" in made && left !== null) await discardFork(this.#app, left);
    return made;
  }

  async #attempt(left: SessionRecord | null): Promise<Run | SpawnRefusal> {
    const { userId } = this.#caller;
    const root = rootOf(this.#caller, this.#names);
    const terms = await checkSpawn(this.#app, this.#caller, this.#request, root);
    if ("status" in terms) return terms;
    const event = childEvent(this.#app, this.#caller.session, this.#request, terms.target.id);
    const { block } = await this.#app.hooks.ask("subagent_spawning", event);
    if (block !== null) return forbidden("blocked", `This sub-agent was not started: ${block}`);
    const files = await placeFiles(this.#app, userId, this.#request, terms, this.#names);
    if (files !== null && "status" in files) return files;
    try {
      const run = await this.#accepted(await this.#first(terms, files, left), left);
      const made = { ...event, childSessionKey: run.session.key, runId: run.runId };
      await this.#app.hooks
        .notify("subagent_spawned", made)
        .catch((error: unknown) => this.#app.report(error));
      return run;
    } catch (error) {
      // Another process has since completed the same call, so the files belong to that child.
      const quicker = await this.#app.runs.get(this.#names.runId, userId);
      if (quicker !== null) return quicker;
      await files?.undo().catch((failed: unknown) => this.#app.report(failed));
      const refused = error instanceof ThreadFailed ? error.refusal : null;
      const limit = refused ?? limitRefusal(error, terms.own.subagents.maxChildren);
      if (limit === null) throw error;
      return this.#opened === null ? limit : withThread(limit, this.#opened);
    }
  }

  async #first(terms: SpawnTerms, files: ChildFiles | null, left: SessionRecord | null): Promise<FirstRun> {
    const request = this.#request;
    const names = this.#names;
    const root = rootOf(this.#caller, names);
    const { task, mode, runtime } = request;
    const attachments = files === null ? null : { path: files.path, receipt: files.receipt };
    // An ACP agent receives only the task.
    const content = runtime === "acp" ? task : firstMessage({ ...terms, task, mode, attachments });
    const provenance = provenanceOf(this.#caller.session.key, root);
    const message = await withBlobs(this.#app.store, this.#scope(terms), {
      role: "user",
      content,
      provenance,
    });
    const thread = await this.#thread(terms, left);
    return { request, terms, names, root, message, thread, label: null, folder: files?.folder ?? null };
  }

  /** Binds the thread before the session exists. A thread whose session is never created stays unused. */
  async #thread({ openThread }: SpawnTerms, left: SessionRecord | null): Promise<FirstRun["thread"]> {
    if (openThread === null) return null;
    const known = left?.meta.delivery;
    if (known?.threadId !== undefined) return known;
    const { task, label } = this.#request;
    try {
      const thread = await openThread(escapeToLine(cutText(label ?? task, longestTitle)));
      const { channel, threadId, accountId } = thread;
      this.#opened = threadId;
      const bound = { channel, threadId, ...present({ accountId }) };
      await this.#app.runs.bindThread(this.#caller.userId, bound, this.#names.key);
      return thread;
    } catch (error) {
      throw new ThreadFailed(error);
    }
  }

  /** Uses the first free label. If another process takes that label first, tries the next one. */
  async #accepted(first: FirstRun, left: SessionRecord | null): Promise<Run> {
    if (left !== null) {
      return this.#acceptFor(left, { ...first, label: left.meta.label ?? null });
    }
    for (let number = 1; ; number++) {
      const label = await this.#freeLabel(first.terms, number);
      try {
        return await this.#created({ ...first, label: label?.text ?? null });
      } catch (error) {
        const isTaken = error instanceof SkeinError && error.code === "conflict";
        // Another process has since forked the session but has not accepted its run.
        const left = isTaken ? await leftFork(this.#app, this.#caller, this.#request, this.#names) : null;
        if (left !== null && !("status" in left))
          return await this.#acceptFor(left, { ...first, label: left.meta.label ?? null });
        if (!isTaken || label === null || !(await this.#isTaken(first.terms, label.text))) throw error;
        number = label.number;
      }
    }
  }

  async #created(first: FirstRun): Promise<Run> {
    const { terms, root, thread, label } = first;
    const { rootId } = root;
    const meta = childMeta(this.#caller, this.#request, terms, { rootId, thread, label });
    const { key, sessionId } = this.#names;
    const init: SessionInit = { key, sessionId, cwd: terms.cwd, meta };
    if (this.#request.context === "fork") return this.#acceptFor(await this.#forked(init), first);
    let run: Run | null = null;
    const { runs } = this.#app;
    const request = (session: SessionRef) => firstRun(this.#app, this.#caller, session, first);
    await this.#app.store.work.create(this.#scope(terms), init, function* (session) {
      const { accepted, afterCommit } = yield* runs.acceptWithin(request(session));
      run = accepted.run;
      return afterCommit;
    });
    if (run === null)
      throw new SkeinError("internal", { problem: `session ${key} was created without its run` });
    return run;
  }

  /** Forks at the entry before the call, because the call has no result yet. */
  async #forked(init: SessionInit): Promise<SessionRecord> {
    const { sessions } = this.#app.store;
    const { session, entryId } = this.#caller;
    const scope: Scope = present({ userId: session.userId });
    const made = entryId === null ? null : await sessions.entry(scope, session.sessionId, entryId);
    const leafId = (await sessions.get(scope, session.sessionId))?.leafId ?? session.leafId;
    return sessions.fork(scope, session.sessionId, made === null ? leafId : made.parentId, init);
  }

  async #acceptFor(session: SessionRecord, first: FirstRun): Promise<Run> {
    try {
      const request = firstRun(this.#app, this.#caller, sessionRefOf(session), first);
      return (await this.#app.runs.accept(request)).run;
    } catch (error) {
      await discardFork(this.#app, session);
      throw error;
    }
  }

  async #freeLabel(
    terms: SpawnTerms,
    from: number,
  ): Promise<{ readonly text: string; readonly number: number } | null> {
    const label = this.#wantedLabel();
    if (label === null) return null;
    for (let number = from; ; number++) {
      const text = numberedLabel(label, number);
      if (!(await this.#isTaken(terms, text))) return { text, number };
    }
  }

  /**
   * Returns the label to use. A numbered suffix would reveal labels to a caller that is not allowed to list sessions.
   * The labels of such a caller end with the spawn ID instead.
   */
  #wantedLabel(): string | null {
    const { label } = this.#request;
    if (label === undefined) return null;
    const { sandboxed, visibility } = this.#app.access.policyFor(this.#caller);
    return sandboxed || visibility.list === "self" ? markedLabel(label, this.#names.spawnId) : label;
  }

  async #isTaken({ target }: SpawnTerms, label: string): Promise<boolean> {
    const { sessions } = this.#app.store;
    const scope: Scope = { agentId: target.id, ...present({ userId: this.#caller.userId }) };
    return (await sessions.find(scope, { by: "label", label, agentId: target.id })).length > 0;
  }

  #scope({ target }: SpawnTerms): Scope & { readonly agentId: string } {
    return { agentId: target.id, ...present({ userId: this.#caller.userId }) };
  }
}

/** Names the thread in the refusal, because Skein cannot close the thread. */
function withThread(refusal: SpawnRefusal, threadId: string): SpawnRefusal {
  const error = `${refusal.error} The thread ${escapeToLine(threadId)} had already been opened for it and remains empty.`;
  return { ...refusal, error, threadId };
}

class ThreadFailed extends Error {
  readonly refusal: SpawnRefusal;

  constructor(cause: unknown) {
    const error = `Thread bind failed: ${thrownText(cause)}`;
    super(error, { cause });
    this.refusal = { status: "error", code: "thread_unavailable", error };
  }
}

/**
 * Returns the fork left behind by a process that died before the fork's run was accepted, or `null` if no session has
 * the key. If the session with the key is not an unused fork, returns a `conflict` refusal.
 */
async function leftFork(
  { store, runs }: App,
  { userId, session: parent }: Spawner,
  { context }: SpawnRequest,
  { key }: SpawnNames,
): Promise<SessionRecord | SpawnRefusal | null> {
  const scope: Scope = present({ userId });
  const [found] = await store.sessions.find(scope, { by: "key", key });
  if (found === undefined) return null;
  const { uid, leafId } = found;
  const isUntouched =
    leafId === null || (await store.sessions.entry(scope, parent.sessionId, leafId)) !== null;
  const hasRun = (await runs.list({ sessionUid: uid, limit: 1 }, userId)).length > 0;
  if (context === "fork" && isUntouched && !hasRun) return found;
  const error =
    "This call was already made, and its child has continued since then. Check that session (subagents, sessions_list), or spawn a new one with a new call.";
  return { status: "error", code: "conflict", error };
}

/**
 * Removes a child that has never run. Keeps a child that has a run, because it was started by the same call in another
 * process.
 */
async function discardFork(
  { store, runs, report }: App,
  { userId, sessionId, uid }: SessionRecord,
): Promise<void> {
  const scope: Scope = present({ userId });
  try {
    if ((await runs.list({ sessionUid: uid, limit: 1 }, userId)).length > 0) return;
    if (await store.sessions.remove(scope, sessionId)) await store.sessions.purge(scope, sessionId);
  } catch (error) {
    report(error);
  }
}
