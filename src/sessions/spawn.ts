import { KeyedMutex } from "../core/concurrency.ts";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import { cutText, escapeToLine, thrownText } from "../core/text.ts";
import { redactedText } from "../core/tombstone.ts";
import type { Run } from "../runs/contract.ts";
import { findConflict } from "../runs/same-request.ts";
import type { Scope, SessionInit, SessionRecord } from "../store/contract.ts";
import type { App } from "./app.ts";
import { withBlobs } from "./append.ts";
import type { ChildFiles } from "./child-files.ts";
import { placeFiles } from "./child-files.ts";
import { firstMessage } from "./child-rules.ts";
import { withWorkingDirectory } from "./run-place.ts";
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
import type { FirstRun } from "./spawn-run.ts";
import { childEvent, childMeta, firstRun, provenanceOf, rootOf, spawnDigests } from "./spawn-run.ts";

const longestTitle = 100;

/** Makes a session for a task, and its first run with it. The same call again gives the same child. */
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
  const run = await turnsOf(app).run(
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

/** `null`: the call asks for what the one that spawned asked for. */
function spawnConflict(run: Run, request: SpawnRequest, names: SpawnNames): SkeinError | null {
  if (run.options.requestDigests !== undefined) return findConflict(run, { digests: spawnDigests(request) });
  const difference = differenceFrom(run, request, names);
  return difference === null
    ? null
    : new SkeinError("idempotency_conflict", { runId: run.runId, difference });
}

/** For runs without digests: those of earlier versions, and those whose input was redacted, which is not compared. */
function differenceFrom(
  { options: { sequel } }: Run,
  request: SpawnRequest,
  names: SpawnNames,
): string | null {
  if (sequel?.type !== "child" || sequel.task === redactedText) return null;
  const { task, label, model } = sequel;
  if (task !== request.task) return "another task";
  const isSameLabel =
    label === undefined || request.label === undefined
      ? label === request.label
      : label === redactedText || isGivenLabel(label, request.label, names.spawnId);
  if (!isSameLabel) return "another label";
  return model === request.model ? null : "another model";
}

/** The same call twice at once: the second finds what the first has made, and takes nothing of it away. */
const turns = new WeakMap<object, KeyedMutex>();

function turnsOf(app: App): KeyedMutex {
  const queue = turns.get(app) ?? new KeyedMutex();
  turns.set(app, queue);
  return queue;
}

function noAcp({ sandboxed }: Caller, request: SpawnRequest): SpawnRefusal {
  const error = 'runtime="acp" is not available here: no ACP agents are configured (acp.agents)';
  return sandboxProblem(request, sandboxed, false) ?? { status: "error", code: "acp_unavailable", error };
}

/** One child on its way. Until its run is accepted, everything that was made for it goes again where something fails. */
class Spawning {
  readonly #app: App;
  readonly #caller: Spawner;
  readonly #request: SpawnRequest;
  readonly #names: SpawnNames;
  /** The thread that was opened for it. */
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
    const made = await this.#tried(left);
    if ("status" in made && left !== null) await discardFork(this.#app, left);
    return made;
  }

  async #tried(left: SessionRecord | null): Promise<Run | SpawnRefusal> {
    const { userId } = this.#caller;
    const root = rootOf(this.#caller, this.#names);
    const terms = await checkSpawn(this.#app, this.#caller, this.#request, root);
    if ("status" in terms) return terms;
    const told = childEvent(this.#caller, this.#request, terms.target.id);
    const { block } = await this.#app.hooks.ask("subagent_spawning", told);
    if (block !== null) return forbidden("blocked", `This sub-agent was not started: ${block}`);
    const files = await placeFiles(this.#app, userId, this.#request, terms, this.#names);
    if (files !== null && "status" in files) return files;
    try {
      const run = await this.#accepted(await this.#first(terms, files, left), left);
      const made = { ...told, childSessionKey: run.session.key, runId: run.runId };
      await this.#app.hooks
        .notify("subagent_spawned", made)
        .catch((error: unknown) => this.#app.report(error));
      return run;
    } catch (error) {
      // Made meanwhile by the same call elsewhere: the files are that child's.
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
    // What somebody else's agent is given is the task, and nothing of how sessions are spawned here.
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

  /** Bound before the session is there: a thread whose session never comes belongs to nobody. */
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

  /** Under the first label that is free; another process may take it meanwhile, and then it is the next. */
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
        // A fork that was made by then, by a process that did not come to its run.
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
    await this.#app.store.work.create(this.#scope(terms), init, (session) => {
      const { accepted, afterCommit } = this.#app.runs.acceptWithin(
        firstRun(this.#app, this.#caller, session, first),
      );
      run = accepted.run;
      return afterCommit;
    });
    if (run === null)
      throw new SkeinError("internal", { problem: `session ${key} was made without its run` });
    return run;
  }

  /** From the entry before the call: what it is to do is in the task, and the call has no result yet. */
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

  /** Who may not know what there is would learn it by the number behind a label: theirs end in the spawn's own id. */
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

/** Nobody can close it from here: whoever asked has to know of it. */
function withThread(refusal: SpawnRefusal, threadId: string): SpawnRefusal {
  const error = `${refusal.error} The thread ${escapeToLine(threadId)} had been opened for it, and is left empty.`;
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

/** Sessions under the key of a child whose run is not there. */

/**
 * A fork whose process died before its run was accepted; `null`: nothing is under the key. Whatever else is there has had a
 * life of its own, its run is long forgotten, and it is nobody's to go on with or to take away: `conflict`.
 */
export async function leftFork(
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
    "This call was made before, and its child has gone on since. Look at that session (subagents, sessions_list), or spawn another with a new call.";
  return { status: "error", code: "conflict", error };
}

/** A child that never ran is no child. One that has a run after all, of the same call made elsewhere, stays. */
export async function discardFork(
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
