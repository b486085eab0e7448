import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RunBooks } from "../../test/support/run-books.ts";
import { agentPolicy, spawnGround, wish } from "../../test/support/spawning.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import type { Outcome, Run } from "../runs/contract.ts";
import { planSequel } from "../runs/plan-sequel.ts";
import type { AcpAgents } from "./app.ts";
import { spawnChild } from "./spawn.ts";
import type { SpawnRequest } from "./spawn-request.ts";

let folder = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "spawn-acp-result-")));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const acpWish = (more: Partial<SpawnRequest> = {}) => wish({ runtime: "acp", agentId: "codex", ...more });

/** A real run ledger. `agent` runs while the spawn waits for the agent. */
async function world(agent: (act: Acts, run: Run) => Promise<string | null>) {
  const books = new RunBooks({ planSequel });
  const untilAgentSessionId: AcpAgents["untilAgentSessionId"] = (run) => agent(acts, run);
  const parts = {
    runs: books.runs,
    clock: { now: () => books.now },
    watcher: { untilEnded: async (runId: string) => acts.ended(runId) },
    acp: { names: ["codex"], defaultAgent: "codex", untilAgentSessionId },
  };
  const ground = spawnGround(folder, [agentPolicy("main")], parts, books.db);
  const { session } = await ground.caller();
  books.sessions.set(session.uid, sessionRefOf(session));
  const acts: Acts = {
    link: async ({ session: { sessionId } }) => {
      await ground.store.sessions.patch({}, sessionId, { acp: { agentSessionId: "their-1" } });
      return "their-1";
    },
    end: async (run, outcome) => {
      const claim = await books.claim();
      expect(claim.run.runId).toBe(run.runId);
      await books.runs.end(claim.held, outcome);
    },
    ended: async (runId) => {
      const run = (await books.runs.get(runId)) as Run;
      await acts.link(run);
      await acts.end(run, { state: "ok", reply: "Ten pages." });
      return run;
    },
  };
  const announced = async () =>
    (await books.runs.list({ sessionUid: session.uid })).filter(({ kind }) => kind === "announce").length;
  return { ...ground, real: books, acts, announced };
}

interface Acts {
  link(run: Run): Promise<string>;
  end(run: Run, outcome: Outcome): Promise<void>;
  ended(runId: string): Promise<Run>;
}

describe("the result of a spawn over ACP", () => {
  test("returns once the agent has reported its session; the result is announced later, once", async () => {
    const { deps: app, caller, real, acts, announced } = await world((act, run) => act.link(run));
    const result = await spawnChild(app, await caller(), acpWish());
    expect(result).toMatchObject({
      status: "ok",
      agentSessionId: "their-1",
      note: expect.stringContaining("pushed"),
    });
    expect(await announced()).toBe(0);
    const run = (await real.runs.get(String(result.runId))) as Run;
    await acts.end(run, { state: "ok", reply: "Ten pages." });
    expect(await announced()).toBe(1);
  });

  test("repeating the call gives the same result, before and after the end", async () => {
    const { deps: app, caller, real, acts, announced } = await world((act, run) => act.link(run));
    const first = await spawnChild(app, await caller(), acpWish());
    expect(await spawnChild(app, await caller(), acpWish())).toEqual(first);
    await acts.end((await real.runs.get(String(first.runId))) as Run, { state: "ok", reply: "Ten pages." });
    expect(await spawnChild(app, await caller(), acpWish())).toEqual(first);
    expect(await announced()).toBe(1);
  });

  test("frees the slot of its run while it waits", async () => {
    const waits: unknown[] = [];
    const { deps: app, caller } = await world((act, run) => act.link(run));
    const from = await caller(
      {},
      {
        whileWaiting: async (runIds, wait) => {
          waits.push(runIds);
          return { entered: true, value: await wait() };
        },
      },
    );
    const { runId } = await spawnChild(app, from, acpWish());
    expect(waits).toEqual([[runId]]);
  });

  test("a run that ended before is the result, and is not announced again", async () => {
    const failure: Outcome = { state: "error", code: "acp_failed", error: "codex-acp: not found" };
    const {
      deps: app,
      caller,
      announced,
    } = await world(async (act, run) => {
      await act.end(run, failure);
      return null;
    });
    const answer = await spawnChild(app, await caller(), acpWish({ label: "pages" }));
    expect(answer).toEqual({
      status: "error",
      runId: expect.any(String),
      childSessionKey: expect.stringMatching(/^agent:codex:acp:/),
      outcome: "error",
      code: "acp_failed",
      error: "codex-acp: not found",
    });
    expect(await announced()).toBe(0);
    expect(await spawnChild(app, await caller(), acpWish({ label: "pages" }))).toEqual(answer);
  });

  test("reports an abort without any text", async () => {
    const { deps: app, caller } = await world(async (act, run) => {
      await act.end(run, { state: "aborted" });
      return null;
    });
    expect(await spawnChild(app, await caller(), acpWish())).toMatchObject({
      status: "error",
      outcome: "aborted",
      code: "aborted",
      error: "The agent's run ended in state aborted.",
    });
  });

  test("an agent that has reported its session and ended returns its result here, and nowhere else", async () => {
    const {
      deps: app,
      caller,
      announced,
    } = await world(async (act, run) => {
      const id = await act.link(run);
      await act.end(run, { state: "ok", reply: "Ten pages." });
      return id;
    });
    expect(await spawnChild(app, await caller(), acpWish())).toMatchObject({
      status: "ok",
      agentSessionId: "their-1",
      result: "Ten pages.",
      outcome: "ok",
      note: "It has already ended. This is its result, and no message will follow.",
    });
    expect(await announced()).toBe(0);
  });

  test("an agent that takes too long to report its session is announced like any other", async () => {
    const { deps: app, caller, real, acts, announced } = await world(async () => null);
    const result = await spawnChild(app, await caller(), acpWish());
    expect(result).toMatchObject({
      status: "ok",
      note: expect.stringMatching(/^The agent has not reported .* pushed/),
    });
    expect(result).not.toHaveProperty("agentSessionId");
    await acts.end((await real.runs.get(String(result.runId))) as Run, {
      state: "error",
      code: "acp_failed",
    });
    expect(await announced()).toBe(1);
  });

  test("if the waiter dies before it gets the result, the end is announced, once", async () => {
    // The process dies during the wait, so nothing after the wait runs.
    const {
      deps: app,
      caller,
      real,
      acts,
      announced,
    } = await world(() => new Promise<never>(() => undefined));
    void spawnChild(app, await caller(), acpWish());
    await expect.poll(async () => (await real.runs.list({})).length).toBe(1);
    const [run] = await real.runs.list({});
    expect(await real.runs.replyWait(run?.runId ?? "")).toMatchObject({ state: "open" });
    real.gone.add("here");
    await acts.end(run as Run, { state: "ok", reply: "Ten pages." });
    expect(await announced()).toBe(1);
    expect(await spawnChild(app, await caller(), acpWish())).toMatchObject({
      status: "ok",
      runId: run?.runId,
    });
    expect(await announced()).toBe(1);
  });

  test("if the waiter leaves, the result is announced", async () => {
    const leaving = new AbortController();
    const {
      deps: app,
      caller,
      real,
    } = await world(async () => {
      leaving.abort();
      throw leaving.signal.reason;
    });
    const result = await spawnChild(app, await caller({}, { signal: leaving.signal }), acpWish());
    expect(result.status).toBe("ok");
    expect(await real.runs.replyWait(String(result.runId))).toMatchObject({ state: "late" });
  });

  test("a wait that would cause a deadlock is not entered", async () => {
    const { deps: app, caller, real } = await world((act, run) => act.link(run));
    const from = await caller({}, { whileWaiting: async (cycle) => ({ entered: false, cycle }) });
    const result = await spawnChild(app, from, acpWish());
    expect(result).toMatchObject({ status: "ok", code: "wait_cycle" });
    expect(await real.runs.replyWait(String(result.runId))).toMatchObject({ state: "late" });
  });

  test("if the wait fails after the result was handed out, the result is returned", async () => {
    const ground = await world(() => Promise.reject(new Error("not asked")));
    const { deps: app, caller, acts, announced } = ground;
    const whileWaiting = async ([runId = ""]: readonly string[]) => {
      await acts.ended(runId);
      throw new Error("connection lost");
    };
    const result = await spawnChild(app, await caller({}, { whileWaiting }), acpWish({ background: false }));
    expect(result).toMatchObject({ status: "ok", result: "Ten pages.", outcome: "ok" });
    expect(await announced()).toBe(0);
  });

  test("in the foreground returns its result, with the agent's session", async () => {
    const { deps: app, caller, announced } = await world(() => Promise.reject(new Error("not asked")));
    expect(await spawnChild(app, await caller(), acpWish({ background: false }))).toEqual({
      status: "ok",
      runId: expect.any(String),
      agentSessionId: "their-1",
      childSessionKey: expect.stringMatching(/^agent:codex:acp:/),
      mode: "run",
      result: "Ten pages.",
      outcome: "ok",
      usage: expect.any(Object),
    });
    expect(await announced()).toBe(0);
  });
});
