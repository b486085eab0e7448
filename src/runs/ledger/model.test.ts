import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { repetitions } from "../../../test/support/repetitions.ts";
import { RunBooks, sessionNamed } from "../../../test/support/run-books.ts";
import type { ModelRun } from "../../../test/support/run-model.ts";
import { RunModel } from "../../../test/support/run-model.ts";
import type { Claim, HeldRun } from "../contract.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-model-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const cap = 2;
const sessions = ["ann/a", "ann/b", "bob/c", "bob/d"];
const kinds = [
  "accept",
  "accept",
  "child",
  "claim",
  "claim",
  "steer",
  "wait",
  "waitOver",
  "sleep",
  "end",
  "end",
  "abort",
  "lose",
  "release",
  "reopen",
] as const;
const step = fc.record({ kind: fc.constantFrom(...kinds), which: fc.nat(20), as: fc.nat(1) });
type Step = { readonly kind: (typeof kinds)[number]; readonly which: number; readonly as: number };

/** A session of the same user. */
function besides(uid: string, which: number): string {
  const ofUser = sessions.filter((each) => each.startsWith(uid.slice(0, 4)));
  return ofUser[which % ofUser.length] ?? uid;
}

let files = 0;

/** Two processes that share one file, and the model to compare them with. */
class Both {
  readonly path = join(folder, `${++files}.db`);
  readonly model = new RunModel(cap);
  readonly books = [this.#open("x"), this.#open("y")] as [RunBooks, RunBooks];
  readonly claims = new Map<string, Claim>();
  #opened = 0;

  #open(name: string): RunBooks {
    const lanes = { main: cap, subagent: cap, cron: cap, nested: cap };
    return new RunBooks({ lanes }, this.path, name);
  }

  async close(): Promise<void> {
    for (const each of this.books) await each.close();
  }

  pick(runs: readonly ModelRun[], which: number): ModelRun | null {
    return runs.length === 0 ? null : (runs[which % runs.length] ?? null);
  }

  held(run: ModelRun): HeldRun {
    const claim = this.claims.get(run.runId);
    if (claim === undefined) throw new Error(`nobody claimed ${run.runId}`);
    return claim.held;
  }

  async step({ kind, which, as }: Step): Promise<void> {
    const { runs } = this.books[as] as RunBooks;
    const active = this.model.inState("running", "waiting");
    const any = this.pick(active, which);
    const running = this.pick(this.model.inState("running"), which);
    const waiting = this.pick(this.model.inState("waiting"), which);
    if (kind === "accept") await this.accept(as, sessions[which % 4] ?? "", which % 5 === 0, null, null);
    else if (kind === "child" && running !== null)
      await this.accept(as, besides(running.uid, which), false, running.runId, null);
    else if (kind === "claim") await this.claim(as);
    else if (kind === "steer" && running !== null) {
      const [first, ...rest] = this.model.steerable(running);
      const offered = (await runs.steerable(this.held(running))).map(({ runId }) => runId);
      expect(offered).toEqual([first, ...rest].flatMap((run) => run?.runId ?? []));
      if (first === undefined) return;
      await runs.mergeInput(this.held(running), first.runId);
      this.model.merge(running, first);
    } else if (kind === "wait" && running !== null) {
      await runs.wait(this.held(running), { for: "approval" });
      running.state = "waiting";
    } else if (kind === "waitOver" && waiting !== null) {
      expect(await runs.resume(this.held(waiting))).toBe(this.model.resume(waiting));
    } else if (kind === "sleep" && running !== null) {
      const slept = await runs.sleep(this.held(running), { wakeAt: Number.MAX_SAFE_INTEGER });
      expect(slept).toBe(this.model.sleep(running));
    } else if (kind === "end" && running !== null) await this.end(as, running);
    else if (kind === "abort") {
      const run = this.pick(this.model.runs, which);
      if (run === null) return;
      this.model.abort(run);
      expect(await runs.abort(run.runId)).toBe(run.state);
    } else if ((kind === "lose" || kind === "release") && any !== null) {
      await runs[kind](this.held(any));
      this.model.giveBack(any, kind === "lose");
    } else if (kind === "reopen") {
      this.books[as]?.db.close();
      this.books[as as 0 | 1] = this.#open(`z${++this.#opened}`);
    }
  }

  async accept(
    as: number,
    uid: string,
    isSilent: boolean,
    startedBy: string | null,
    arrivalOf: string | null,
  ): Promise<void> {
    const made = await this.books[as]?.accept(uid, {
      kind: isSilent ? "note" : "user",
      ...(arrivalOf === null ? {} : { arrivalOf }),
      ...(startedBy === null ? {} : { startedBy }),
    });
    const { runId = "" } = made ?? {};
    this.model.accept({ runId, uid, isSilent, isSteer: !isSilent, startedBy, arrivalOf });
  }

  async claim(as: number): Promise<void> {
    const claim = (await this.books[as]?.runs.claim(`owner-${as}`)) ?? null;
    const run = this.model.claim();
    expect(claim?.run.runId ?? null).toBe(run?.runId ?? null);
    if (claim === null || run === null) return;
    this.claims.set(run.runId, claim);
    expect(claim.arrivals.map(({ runId }) => runId)).toEqual(
      this.model.keptFor(run).map(({ runId }) => runId),
    );
    expect(claim.how === "woken").toBe(run.isWoken);
    for (const { runId } of claim.arrivals) {
      await this.books[as]?.runs.mergeInput(claim.held, runId);
      this.model.merge(run, this.model.get(runId));
    }
    await this.books[as]?.runs.markWritten(claim.held);
    this.model.wrote(run);
  }

  /** The owner of a child announces its success to the session that started it, unless the child was aborted. */
  async end(as: number, run: ModelRun): Promise<void> {
    const parent = run.startedBy === null ? null : this.model.get(run.startedBy);
    const runId = `announce:${run.runId}`;
    const message = { role: "user" as const, content: "done" };
    const deliver =
      parent === null
        ? []
        : [
            {
              session: sessionNamed(parent.uid),
              kind: "user" as const,
              message,
              runId,
              arrivalOf: run.runId,
            },
          ];
    await this.books[as]?.runs.end(this.held(run), { state: "ok" }, { deliver });
    const announced = { runId, isSilent: false, isSteer: true, startedBy: null, arrivalOf: run.runId };
    if (parent !== null && !run.isAsked) this.model.accept({ ...announced, uid: parent.uid });
    this.model.end(run, run.isAsked ? "aborted" : "ok");
  }

  /** Both processes see the state that the model predicts. */
  async check(): Promise<void> {
    const expected = this.model.runs.map(({ runId, state, keptFor, mergedInto, lost, outcome }) => ({
      runId,
      state,
      keptFor,
      mergedInto,
      lost,
      outcome,
    }));
    for (const { runs } of this.books) {
      const found = (await runs.list({ limit: 1000 })).toReversed();
      expect(
        found.map(({ runId, state, keptFor, mergedInto, lost, outcome }) => ({
          runId,
          state,
          keptFor,
          mergedInto,
          lost,
          outcome: outcome?.state ?? null,
        })),
      ).toEqual(expected);
      for (const run of found) {
        const isHeld = ["running", "waiting"].includes(run.state);
        expect(await runs.isHeld({ runId: run.runId, fence: run.fence })).toBe(isHeld);
      }
    }
  }
}

const cases = repetitions.propertyCases;

function stepsOf(...steps: readonly (readonly [Step["kind"], number])[]): Step[] {
  return steps.map(([kind, which]) => ({ kind, which, as: 0 }));
}

/** A running child is aborted, and its owner then ends it as successful. */
const abortedChild = stepsOf(
  ["accept", 0],
  ["claim", 0],
  ["child", 13],
  ["claim", 0],
  ["wait", 0],
  ["abort", 7],
  ["end", 0],
);

/** A running run is aborted before it goes to sleep. */
const abortedBeforeSleep = stepsOf(["accept", 0], ["claim", 0], ["child", 13], ["abort", 0], ["sleep", 0]);

test(
  "two processes and a simple model agree after every step",
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
        const both = new Both();
        try {
          for (const each of steps) {
            await both.step(each as Step);
            await both.check();
          }
        } finally {
          await both.close();
        }
      }),
      { numRuns: cases, examples: [[abortedChild], [abortedBeforeSleep]] },
    );
  },
  Math.max(600_000, cases * 1000),
);
