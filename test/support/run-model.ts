import { ranks } from "../../src/runs/lanes.ts";

/** The simplest model of the run store: a list with loops over it and a single lane. */
export interface ModelRun {
  readonly runId: string;
  uid: string;
  readonly seq: number;
  readonly isSilent: boolean;
  readonly isSteer: boolean;
  readonly startedBy: string | null;
  readonly arrivalOf: string | null;
  state: string;
  rank: number;
  hasStarted: boolean;
  lost: number;
  isAsked: boolean;
  isWoken: boolean;
  wantsSlot: boolean;
  keptFor: string | null;
  mergedInto: string | null;
  outcome: string | null;
  /** The runs that this run is sleeping for, and whether each has arrived. */
  waits: Map<string, boolean>;
}

const fresh = {
  state: "queued",
  hasStarted: false,
  lost: 0,
  isAsked: false,
  isWoken: false,
  wantsSlot: false,
};

export class RunModel {
  readonly runs: ModelRun[] = [];
  readonly cap: number;
  readonly #turns = new Map<string, number>();
  readonly #last = new Map<string, number>();

  constructor(cap: number) {
    this.cap = cap;
  }

  get(runId: string): ModelRun {
    const run = this.runs.find((each) => each.runId === runId);
    if (run === undefined) throw new Error(`the model has no ${runId}`);
    return run;
  }

  inState(...states: string[]): ModelRun[] {
    return this.runs.filter(({ state }) => states.includes(state));
  }

  accept(made: Pick<ModelRun, "runId" | "uid" | "isSilent" | "isSteer" | "startedBy" | "arrivalOf">): void {
    const { arrivalOf } = made;
    const keeper = this.runs.find(
      (run) =>
        run.uid === made.uid &&
        (run.state === "sleeping" || (run.state === "queued" && run.isWoken)) &&
        arrivalOf !== null &&
        run.waits.get(arrivalOf) === false,
    );
    const rank = made.isSilent ? ranks.silent : ranks.other;
    const links = { keptFor: keeper?.runId ?? null, mergedInto: null, outcome: null, waits: new Map() };
    this.runs.push({ ...made, ...fresh, ...links, seq: this.runs.length + 1, rank });
    if (arrivalOf !== null) this.#arrived(arrivalOf);
  }

  /** The run that is claimed next, or `null` if none can be claimed. */
  claim(): ModelRun | null {
    const taken = this.runs.filter(
      (run) => !run.isSilent && (run.state === "running" || run.wantsSlot),
    ).length;
    const heads = [...new Set(this.runs.map(({ uid }) => uid))].flatMap((uid) => this.#head(uid) ?? []);
    const turnOf = (name: string) => this.#turns.get(name) ?? 0;
    const inTurn = (slot: string) =>
      heads
        .filter(({ isSilent }) => isSilent === (slot === "none"))
        .toSorted(
          (a, b) =>
            turnOf(`${slot} ${userOf(a.uid)}`) - turnOf(`${slot} ${userOf(b.uid)}`) ||
            (userOf(a.uid) < userOf(b.uid) ? -1 : userOf(a.uid) > userOf(b.uid) ? 1 : 0) ||
            turnOf(`${slot} ${a.uid}`) - turnOf(`${slot} ${b.uid}`) ||
            a.seq - b.seq,
        )[0];
    const run = inTurn("none") ?? (taken < this.cap ? inTurn("main") : undefined) ?? null;
    if (run === null) return null;
    const slot = run.isSilent ? "none" : "main";
    const turn = (this.#last.get(slot) ?? 0) + 1;
    this.#last.set(slot, turn);
    for (const name of [userOf(run.uid), run.uid]) this.#turns.set(`${slot} ${name}`, turn);
    run.state = "running";
    run.hasStarted = true;
    return run;
  }

  steerable(into: ModelRun): ModelRun[] {
    return this.runs.filter(
      (run) =>
        run.uid === into.uid &&
        run.state === "queued" &&
        run.isSteer &&
        !run.hasStarted &&
        run.keptFor === null,
    );
  }

  keptFor(run: ModelRun): ModelRun[] {
    return this.runs.filter((each) => each.keptFor === run.runId && each.state === "queued");
  }

  merge(into: ModelRun, run: ModelRun): void {
    Object.assign(run, { state: "merged", mergedInto: into.runId, keptFor: null });
  }

  /** The messages that woke the run have been written. */
  wrote(run: ModelRun): void {
    run.isWoken = false;
    run.waits.clear();
  }

  resume(run: ModelRun): boolean {
    const running = this.runs.filter((each) => !each.isSilent && each.state === "running").length;
    const isFree = run.isSilent || running < this.cap;
    run.wantsSlot = !isFree;
    if (isFree) run.state = "running";
    return isFree;
  }

  sleep(run: ModelRun): string {
    if (run.isAsked) {
      this.end(run, "aborted");
      return "aborted";
    }
    const targets = this.runs.filter(({ startedBy }) => startedBy === run.runId);
    const found = targets.map((target) => ({
      target,
      isOpen: target.outcome === null,
      arrivals: this.runs.filter(
        (each) =>
          each.arrivalOf === target.runId &&
          each.uid === run.uid &&
          each.state === "queued" &&
          each.keptFor === null &&
          !each.hasStarted,
      ),
    }));
    const wanted = found.filter(({ isOpen, arrivals }) => isOpen || arrivals.length > 0);
    if (wanted.length === 0) return "nothing_to_wait_for";
    run.waits.clear();
    for (const { target, arrivals } of wanted) {
      run.waits.set(target.runId, arrivals.length > 0);
      for (const each of arrivals) each.keptFor = run.runId;
    }
    run.state = "sleeping";
    this.#wakeIfAllThere(run);
    return run.state;
  }

  end(run: ModelRun, outcome: string): void {
    Object.assign(run, { state: outcome, outcome, isWoken: false, wantsSlot: false, keptFor: null });
    run.waits.clear();
    for (const each of this.keptFor(run)) each.keptFor = null;
    const merged = this.runs.filter((each) => each.mergedInto === run.runId && each.outcome === null);
    for (const each of merged) each.outcome = outcome;
    for (const each of [...merged, run]) this.#arrived(each.runId);
  }

  giveBack(run: ModelRun, isLost: boolean): void {
    if (!run.isWoken) run.waits.clear();
    if (isLost && run.state === "running" && run.lost === 3) {
      this.end(run, "error");
      return;
    }
    const rank = run.isWoken ? ranks.woken : ranks.recovered;
    Object.assign(run, { state: "queued", rank, lost: run.lost + (isLost ? 1 : 0), wantsSlot: false });
    if (run.isAsked) this.end(run, "aborted");
  }

  abort(run: ModelRun): void {
    if (run.mergedInto !== null && run.outcome === null) this.abort(this.get(run.mergedInto));
    else if (run.state === "queued" || run.state === "sleeping") this.end(run, "aborted");
    else if (run.outcome === null && run.state !== "merged") run.isAsked = true;
  }

  #head(uid: string): ModelRun | null {
    const ofSession = this.runs.filter((run) => run.uid === uid);
    if (ofSession.some(({ state }) => state === "running" || state === "waiting")) return null;
    const queued = ofSession.filter(({ state, keptFor }) => state === "queued" && keptFor === null);
    return queued.toSorted((a, b) => a.rank - b.rank || a.seq - b.seq)[0] ?? null;
  }

  #arrived(runId: string): void {
    for (const run of this.runs) {
      if (run.waits.get(runId) !== false) continue;
      run.waits.set(runId, true);
      if (run.state === "sleeping") this.#wakeIfAllThere(run);
    }
  }

  #wakeIfAllThere(run: ModelRun): void {
    if ([...run.waits.values()].includes(false)) return;
    Object.assign(run, { state: "queued", rank: ranks.woken, isWoken: true });
  }
}

function userOf(uid: string): string {
  return uid.split("/")[0] ?? "";
}
