// Counts a family's outcome using only the logs and work.db. Returns descriptions of any problems.

import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Entry } from "../../src/index.ts";

type Row = Readonly<Record<string, unknown>>;

/** The fields in which a result reports how a run ended. */
const ends = ["result", "reply", "outcome"];
/** A progress note is dropped when the run it reports on ends. */
const earlyKinds = ["spawn", "note"];

/** The states of a reply that a waiter received. `written` means that it is in the waiting run's session. */
const takenStates = ["taken", "written"];

export class FamilyCount {
  readonly #runs: readonly Row[];
  readonly #replies: ReadonlyMap<string, Row>;
  readonly #children: readonly Row[];
  readonly #sessions: readonly Row[];
  readonly #letters: readonly Row[];
  readonly #left: Readonly<Record<string, number>>;
  /** Keyed by uid for a session in the trash, otherwise by agent and session ID. */
  readonly #logs = new Map<string, readonly Entry[]>();
  readonly problems: string[] = [];

  constructor(folder: string) {
    const db = new DatabaseSync(join(folder, "skein/work.db"), { readOnly: true });
    const all = (sql: string): Row[] => db.prepare(sql).all() as Row[];
    this.#runs = all("SELECT runs.*, options FROM runs JOIN run_inputs USING (seq) ORDER BY seq");
    this.#replies = new Map(all("SELECT * FROM run_replies").map((row) => [String(row.run_id), row]));
    this.#children = all("SELECT * FROM children");
    this.#sessions = all("SELECT * FROM sessions");
    this.#letters = all("SELECT * FROM outbox");
    const tables = ["ready", "run_waits", "run_partials"];
    this.#left = Object.fromEntries(tables.map((name) => [name, all(`SELECT 1 FROM ${name}`).length]));
    db.close();
    for (const path of globSync(join(folder, "skein/**/*.log.jsonl")))
      this.#logs.set(nameOf(path), entriesOf(path));
    this.#everythingEnded();
    for (const run of this.#runs) if (run.followed === 1) this.#toldOnce(run);
    for (const run of this.#runs) this.#writtenOnce(run);
    this.#sessionsWhole();
    this.#childrenTidied();
  }

  get children(): number {
    return this.#children.length;
  }

  /** The run that started everything. */
  get parent(): Row | undefined {
    return this.#runs.find(({ idem }) => idem === "family");
  }

  get taken(): number {
    return [...this.#replies.values()].filter(({ state }) => takenStates.includes(String(state))).length;
  }

  get told(): number {
    return this.#runs.filter(({ idem }) => /^(announce|ping_pong):/.test(String(idem))).length;
  }

  messagesOf(agent: string, sessionId: string): readonly Row[] {
    const log = this.#logs.get(`${agent}/${sessionId}`) ?? [];
    return log.flatMap((entry) => (entry.type === "message" ? [entry.message as unknown as Row] : []));
  }

  /** One answer for each successful turn, plus one if a run was lost too many times after its answer. */
  answersOnce(agent: string, sessionId: string): void {
    const own = this.#runs.filter((run) => run.agent === agent && run.session_id === sessionId);
    const turns = own.filter(({ state, silent }) => state === "ok" && silent === 0).length;
    const bad = own.filter(({ state }) => state === "error").length;
    const answers = this.messagesOf(agent, sessionId).filter(
      ({ role, stopReason }) => role === "assistant" && stopReason === "stop",
    ).length;
    if (answers < turns || answers > turns + bad)
      this.#say(
        `${agent}/${sessionId} has ${answers} answers to ${turns} turns, and ${bad} that ended badly:\n${[
          ...own.map(runInWords),
          ...this.entriesInWords(agent, sessionId),
        ].join("\n")}`,
      );
  }

  /** Describes the entries for a failure report, because the folder no longer exists by then. */
  entriesInWords(agent: string, sessionId: string): string[] {
    const runOf = new Map(this.#runs.map((run) => [run.entry_id, run.run_id]));
    return (this.#logs.get(`${agent}/${sessionId}`) ?? []).map((entry) => {
      const { role, stopReason, toolCallId } =
        entry.type === "message" ? (entry.message as unknown as Row) : {};
      const of = runOf.get(entry.id);
      return `  ${[entry.type, role, stopReason, toolCallId, entry.id, of && `input of ${of}`].filter(Boolean).join(" ")}`;
    });
  }

  /** Counts the matching results of one of the parent's calls. */
  results(callId: string, fits: (result: Row) => boolean): number {
    return this.messagesOf("main", "parent").filter((message) => {
      const result = resultIn(message);
      return message.toolCallId === callId && result !== null && fits(result);
    }).length;
  }

  /**
   * Calls in any session that have no result or more than one. Excludes calls of runs that had no owner when they
   * ended, because the session's next writer closes those calls.
   */
  get unanswered(): readonly string[] {
    return [...this.#logs].flatMap(([name, log]) => {
      const messages = log.flatMap((entry) =>
        entry.type === "message" ? [entry.message as unknown as Row] : [],
      );
      const results = messages
        .filter(({ role }) => role === "toolResult")
        .map(({ toolCallId }) => toolCallId);
      const times = (all: readonly unknown[], id: unknown) => all.filter((each) => each === id).length;
      const calls = messages.flatMap(({ role, content }) =>
        role === "assistant" ? (content as Row[]).filter(({ type }) => type === "toolCall") : [],
      );
      const isNobodys = this.#runs.some((run) => namesOf(run).includes(name) && endedByNobody(run));
      const ids = calls.map(({ id }) => id);
      // An external agent that continues its session might restart its call numbers.
      return [...new Set(ids)].flatMap((id) => {
        const [called, answered] = [times(ids, id), times(results, id)];
        return answered === called || (answered < called && isNobodys)
          ? []
          : [`call ${id} of ${name}, made ${called} times, has ${answered} results`];
      });
    });
  }

  #everythingEnded(): void {
    for (const { run_id, state, ended_at } of this.#runs)
      if (ended_at === null) this.#say(`run ${run_id} is ${state}`);
    for (const [name, count] of Object.entries(this.#left))
      if (count > 0) this.#say(`${count} rows are left in ${name}`);
    for (const { run_id, state } of this.#replies.values())
      if (state === "open") this.#say(`somebody waits for the ended run ${run_id}`);
  }

  /** A run's end is reported either to a waiter or in a message, exactly once. */
  #toldOnce(run: Row): void {
    const runId = String(run.run_id);
    if (!("sequel" in JSON.parse(String(run.options)))) return;
    const names = [`announce:${runId}`, `ping_pong:${runId}`, `announce_step:${runId}`];
    const heirs = this.#runs.filter(({ idem }) => names.includes(String(idem)));
    const letters = this.#letters.filter(({ idem }) => names.includes(String(idem)));
    const told = heirs.length + letters.length;
    const wait = this.#replies.get(runId);
    const isTaken = takenStates.includes(String(wait?.state));
    // A turn that exceeds the budget, or that a run yielded for, is not announced.
    const isLast = run.kind === "ping_pong" && told === 0;
    if (told !== (isTaken ? 0 : 1) && !isLast)
      this.#say(`${run.kind} ${runId}: ${isTaken}, told ${told} times`);
    if (isTaken && wait !== undefined && wait.by_run !== null) this.#resultOnce(run, String(wait.by_run));
  }

  /** A run that waited has the reply as the result of its call, unless the run itself failed. */
  #resultOnce(run: Row, waiter: string): void {
    const by = this.#runs.find(({ run_id }) => run_id === waiter);
    const messages = this.messagesOf(String(by?.agent), String(by?.session_id));
    const results = messages.filter((message) => {
      const result = resultIn(message);
      return result !== null && result.runId === run.run_id && ends.some((name) => name in result);
    }).length;
    if (results !== 1 && !(results === 0 && by?.state !== "ok"))
      this.#say(`${run.kind} ${run.run_id}: ${results} results of the waiter, which ended as ${by?.state}`);
  }

  /** Input is in its session exactly once. Input that ended before its turn might never have been written. */
  #writtenOnce({ agent, session_id, uid, entry_id, state, kind, run_id }: Row): void {
    const log = this.#logs.get(String(uid)) ?? this.#logs.get(`${agent}/${session_id}`) ?? [];
    const times = log.filter(({ id }) => id === entry_id).length;
    const isEarly =
      times === 0 &&
      ["aborted", "error", "timeout"].includes(String(state)) &&
      earlyKinds.includes(String(kind));
    if (times !== 1 && !isEarly)
      this.#say(`the input of ${kind} ${run_id} (${state}) is there ${times} times`);
    const ids = log.map(({ id }) => id);
    if (new Set(ids).size !== ids.length) this.#say(`an entry of ${agent}/${session_id} is there twice`);
  }

  /** A log is created on first use. A child that was created just before a kill can be stopped before its first turn. */
  #isUnused(uid: string): boolean {
    const runs = this.#runs.filter((run) => run.uid === uid);
    return runs.every(({ started_at, state }) => started_at === null && state === "aborted");
  }

  #sessionsWhole(): void {
    const labels = new Set<string>();
    for (const { uid, agent, session_id, state, label, removed_at } of this.#sessions) {
      const isThere = this.#logs.has(removed_at === null ? `${agent}/${session_id}` : String(uid));
      if (!isThere && !(state === "pending" && this.#isUnused(String(uid))))
        this.#say(`session ${agent}/${session_id} (${state}) has no log`);
      if (removed_at !== null || label === null) continue;
      if (labels.has(`${agent}/${label}`)) this.#say(`two sessions of ${agent} have the label ${label}`);
      labels.add(`${agent}/${label}`);
    }
    const known = new Set(
      this.#sessions.flatMap(({ uid, agent, session_id }) => [uid, `${agent}/${session_id}`]),
    );
    for (const name of this.#logs.keys()) if (!known.has(name)) this.#say(`nobody knows the log ${name}`);
  }

  #childrenTidied(): void {
    for (const { run_id, cleanup, tidied_at } of this.#children) {
      const { state, by_run } = this.#replies.get(String(run_id)) ?? {};
      // A caller that took the result outside a run has one minute to request it again.
      const isDueLater = state === "taken" && by_run === null && tidied_at === null;
      if ((cleanup === "delete") !== (tidied_at !== null) && !isDueLater)
        this.#say(`child ${run_id} (${cleanup}): ${tidied_at}`);
    }
  }

  #say(problem: string): void {
    this.problems.push(problem);
  }
}

/** Whether the run ended without its owner, because it was lost too many times or its abort was requested. */
function endedByNobody({ lost, state, outcome }: Row): boolean {
  const { code } = JSON.parse(String(outcome ?? "{}")) as Row;
  return Number(lost) > 0 && (state === "aborted" || code === "lost_too_often");
}

/** Returns the possible names of the log of a run's session. */
function namesOf({ uid, agent, session_id }: Row): string[] {
  return [String(uid), `${agent}/${session_id}`];
}

function runInWords(run: Row): string {
  const { run_id, kind, idem, state, lost, silent, merged_into, kept_for, outcome } = run;
  const { code, error, entryId } = JSON.parse(String(outcome ?? "{}")) as Row;
  const facts = { idem, state, lost, silent, merged_into, kept_for, code, error, entryId };
  return `  ${kind} ${run_id} ${JSON.stringify(facts)}`;
}

function nameOf(path: string): string {
  const id = basename(path, ".log.jsonl");
  const [, agent] = /agents\/([^/]+)\/sessions\//.exec(path) ?? [];
  return agent === undefined ? basename(dirname(path)) : `${agent}/${id}`;
}

/** A torn last line is ignored. */
function entriesOf(path: string): readonly Entry[] {
  const text = readFileSync(path, "utf8");
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry)
    .filter(({ id }) => id !== undefined);
}

/** Returns a tool's result, or `null` if it is not the result of a session tool. */
function resultIn({ role, content }: Row): Row | null {
  if (role !== "toolResult" || !Array.isArray(content)) return null;
  const [said] = content as { readonly text?: unknown }[];
  if (typeof said?.text !== "string" || !said.text.startsWith("{")) return null;
  try {
    return JSON.parse(said.text) as Row;
  } catch (error) {
    if (error instanceof SyntaxError) return null; // texts from the loop
    throw error;
  }
}
