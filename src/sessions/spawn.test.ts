import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeApp } from "../../test/support/fake-app.ts";
import { fileBoundary } from "../../test/support/file-boundary.ts";
import { agentPolicy, spawnGround, subagents, threadChannels, wish } from "../../test/support/spawning.ts";
import { SkeinError } from "../core/errors.ts";
import type { Run } from "../runs/contract.ts";
import type { SessionRecord } from "../store/contract.ts";
import { withoutContents } from "./attachments.ts";
import { spawnChild } from "./spawn.ts";
import type { SpawnRequest } from "./spawn-request.ts";

let folder = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "spawn-child-")));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const running = (more: Partial<Run> = {}) =>
  ({ runId: "parent-run", root: { rootId: "r", hops: 2 }, options: {}, ...more }) as Run;

describe("a child", () => {
  test("[ATG9] is a session of the parent's user with a run, and the result names both", async () => {
    const { deps, books, store, caller } = spawnGround(folder);
    const result = await spawnChild(deps, await caller({}, { run: running() }), wish({ label: "pages" }));
    const [request] = books.requests;
    expect(result).toEqual({
      status: "ok",
      runId: request?.runId,
      childSessionKey: `subagent:${request?.child?.spawnId}`,
      label: "pages",
      mode: "run",
      note: expect.stringContaining("sessions_yield"),
    });
    expect(request?.child?.spawnId).toMatch(/^[0-9a-f]{16}$/);
    const parent = (await caller()).session;
    expect(request?.session.key).toBe(`agent:main:subagent:${parent.sessionId}:${request?.child?.spawnId}`);
    expect(request).toMatchObject({
      kind: "spawn",
      startedBy: "parent-run",
      root: { rootId: "r", hops: 3 },
      provenance: {
        kind: "inter_session",
        sourceSessionKey: "agent:main:main",
        sourceTool: "sessions_spawn",
      },
      child: {
        parentKey: "agent:main:main",
        mode: "run",
        cleanup: "keep",
        maxChildren: 2,
        archiveAfterMs: 3_600_000,
      },
      options: {
        sequel: {
          type: "child",
          parent: { key: "agent:main:main" },
          label: "pages",
          task: "Count the pages",
        },
      },
    });
    expect(request?.message).toMatchObject({
      role: "user",
      content: expect.stringMatching(
        /^\[Subagent Context\].*\(depth 1\/2\)[\s\S]*\n\n\[Subagent Task\]: Count the pages$/,
      ),
      provenance: { kind: "inter_session", sourceTool: "sessions_spawn" },
    });
    const child = await store.sessions.get({}, request?.session.sessionId ?? "");
    expect(child?.cwd).toBe(folder);
  });

  test("[ATG9] created by the same call again is the same child", async () => {
    const { deps, books, caller } = spawnGround(folder);
    const first = await spawnChild(deps, await caller(), wish({ label: "pages" }));
    expect(await spawnChild(deps, await caller(), wish({ label: "pages" }))).toEqual(first);
    expect(books.requests).toHaveLength(1);
    const other = await spawnChild(deps, await caller({}, { callId: "call-2" }), wish());
    expect(other.runId).not.toBe(first.runId);
  });

  test("[ATG9] requires a session that spawns it", async () => {
    const { deps, caller } = spawnGround(folder);
    expect(await spawnChild(deps, { ...(await caller()), session: null }, wish())).toMatchObject({
      status: "error",
      error: "No session context",
    });
  });

  test("has lineage, rules and overrides in its metadata from the start", async () => {
    const own = agentPolicy("main", {
      tools: { allow: ["read", "sessions_*"], deny: ["bash"] },
      subagents: { ...subagents, allowAgents: ["other"] },
    });
    const { deps, books, store, caller } = spawnGround(folder, [own, agentPolicy("other")]);
    const delivery = { channel: "desk", to: "ann", accountId: "a" };
    const from = await caller(
      { channel: "desk", delivery, sendPolicy: "deny" },
      { run: running({ options: { tools: ["read"] } }) },
    );
    await spawnChild(deps, from, wish({ agentId: "Other", model: "a/b", thinking: "low", tools: [" re* "] }));
    const child = await store.sessions.get({}, books.requests[0]?.session.sessionId ?? "");
    expect(child?.agentId).toBe("other");
    expect(child?.meta).toEqual({
      displayName: "Count the pages",
      spawnedBy: "agent:main:main",
      spawnDepth: 1,
      spawnLimit: 2,
      role: "orchestrator",
      spawnMode: "run",
      rootId: "r",
      channel: "desk",
      delivery,
      sendPolicy: "deny",
      model: "a/b",
      thinkingLevel: "low",
      toolLayers: [
        { of: "agent main", allow: ["read", "sessions_*"], deny: ["bash"] },
        { of: "the run that spawned it", allow: ["read"] },
        { of: "the spawn", allow: ["re*"] },
      ],
    });
  });

  test("of a child has the rules of its whole lineage, and is a leaf at the depth limit", async () => {
    const { deps, books, store, caller } = spawnGround(folder);
    const toolLayers = [{ of: "agent top", allow: ["read"] }];
    const meta = { spawnedBy: "agent:main:session:top", spawnDepth: 1, role: "orchestrator", toolLayers };
    await spawnChild(deps, await caller(meta), wish());
    const child = await store.sessions.get({}, books.requests[0]?.session.sessionId ?? "");
    expect(child?.meta).toMatchObject({ spawnDepth: 2, role: "leaf" });
    expect(child?.meta.toolLayers).toMatchObject([{ of: "agent main" }, ...toolLayers, { of: "sub-agents" }]);
  });

  test.each([
    [2, 1, { spawnLimit: 2, role: "leaf" }],
    [2, 5, { spawnLimit: 2, role: "orchestrator" }],
    [1, 5, { spawnLimit: 1, role: "leaf" }],
  ])("of an agent with depth %i under one with %i can spawn if both allow it", async (main, bob, meta) => {
    const open = { ...subagents, allowAgents: ["*"] };
    const agents = [
      agentPolicy("main", { subagents: { ...open, maxSpawnDepth: main } }),
      agentPolicy("bob", { subagents: { ...open, maxSpawnDepth: bob } }),
    ];
    const { deps, books, store, caller } = spawnGround(folder, agents);
    const childOf = async (at: number) =>
      (await store.sessions.get({}, books.requests[at]?.session.sessionId ?? "")) as SessionRecord;
    await spawnChild(deps, await caller(), wish({ agentId: "bob" }));
    const child = await childOf(0);
    expect(child.meta).toMatchObject(meta);
    const below = await caller({}, { session: child, agentId: "bob" });
    const result = await spawnChild(deps, below, wish());
    expect(result.status).toBe(meta.role === "leaf" ? "forbidden" : "ok");
    if (meta.role === "leaf") return;
    const last = await childOf(1);
    expect(last.meta).toMatchObject({ spawnDepth: 2, spawnLimit: 2, role: "leaf" });
  });

  test("[FAM18] whose label is in use gets the next number", async () => {
    const { deps, caller } = spawnGround(folder, [
      agentPolicy("main", { subagents: { ...subagents, maxChildren: 9 } }),
    ]);
    const long = "x".repeat(512);
    const labels: unknown[] = [];
    for (const [at, label] of ["a", "a", "a", long, long].entries()) {
      const result = await spawnChild(deps, await caller({}, { callId: `${at}` }), wish({ label }));
      labels.push(result.label);
    }
    expect(labels).toEqual(["a", "a (2)", "a (3)", long, `${"x".repeat(508)} (2)`]);
  });

  test("over a limit detected in the transaction leaves nothing behind", async () => {
    const { deps, books, store, caller } = spawnGround(folder);
    books.onAccept = () => {
      throw new SkeinError("budget_exceeded", { rootId: "r", limit: "runs", figure: 101, allowed: 100 });
    };
    const attachments = [{ name: "a", content: "x" }];
    for (const context of ["isolated", "fork"] as const) {
      expect(await spawnChild(deps, await caller(), wish({ attachments, context }))).toMatchObject({
        status: "error",
        code: "budget_exceeded",
        budget: { rootId: "r", limit: "runs", figure: 101, allowed: 100 },
      });
      const { sessions } = await store.sessions.list({}, {});
      expect(sessions.map(({ key }) => key)).toEqual(["agent:main:main"]);
      expect(await store.sessions.trashed({})).toEqual([]);
      expect(readdirSync(join(folder, "store", "main", "attachments"))).toEqual([]);
    }
  });
});

describe("context fork", () => {
  async function talk(ground: ReturnType<typeof spawnGround>) {
    const { session } = await ground.caller();
    const say = (text: string) => ({
      draft: { type: "message", message: { role: "user", content: text } } as const,
    });
    const { entries } = await ground.store.sessions.append({}, session.sessionId, [say("one"), say("two")]);
    return entries.map(({ id }) => id);
  }

  test("[FAM16] starts with the parent's branch, up to the entry before the call", async () => {
    const ground = spawnGround(folder);
    const [first, second] = await talk(ground);
    await spawnChild(
      ground.deps,
      await ground.caller({}, { entryId: second ?? null }),
      wish({ context: "fork" }),
    );
    const child = await ground.store.sessions.get({}, ground.books.requests[0]?.session.sessionId ?? "");
    expect(child?.leafId).toBe(first);
    expect(child?.meta.spawnedBy).toBe("agent:main:main");
    await spawnChild(ground.deps, await ground.caller({}, { callId: "outside" }), wish({ context: "fork" }));
    const other = await ground.store.sessions.get({}, ground.books.requests[1]?.session.sessionId ?? "");
    expect(other?.leafId).toBe(second);
  });

  test("[FAM16] whose process died before its run was accepted is completed", async () => {
    const ground = spawnGround(folder);
    await talk(ground);
    const request = wish({ context: "fork", label: "mine" });
    const accept = ground.deps.runs.accept;
    const hanging = new Promise<never>(() => undefined);
    const dying = fakeApp({ ...ground.deps, runs: { ...ground.deps.runs, accept: () => hanging } });
    void spawnChild(dying, await ground.caller(), request);
    await expect.poll(async () => (await ground.store.sessions.list({}, {})).sessions.length).toBe(2);
    const again = fakeApp({ ...ground.deps, runs: { ...ground.deps.runs, accept } });
    expect(await spawnChild(again, await ground.caller(), request)).toMatchObject({
      status: "ok",
      label: "mine",
    });
    expect((await ground.store.sessions.list({}, {})).sessions).toHaveLength(2);
  });
});

describe("a child whose run is forgotten", () => {
  test.each(["isolated", "fork"] as const)(
    "(%s) is neither continued nor removed when the same call is repeated",
    async (context) => {
      const { deps, books, store, caller } = spawnGround(folder);
      const first = await spawnChild(deps, await caller(), wish({ context }));
      const sessionId = books.requests[0]?.session.sessionId ?? "";
      const message = { role: "user", content: "work" } as const;
      await store.sessions.append({}, sessionId, [{ draft: { type: "message", message } }]);
      books.runs.clear();
      for (const more of [{}, { thinking: "hard" }]) {
        const again = await spawnChild(deps, await caller(), wish({ context, ...more }));
        expect(again).toMatchObject({ status: "error", code: "conflict" });
      }
      expect(await store.sessions.get({}, sessionId)).not.toBeNull();
      expect(books.requests).toHaveLength(1);
      expect(first.status).toBe("ok");
    },
  );

  test("a fork that never ran is removed if its call is refused; one with a run stays", async () => {
    for (const isRun of [false, true]) {
      const { deps, books, store, caller } = spawnGround(folder);
      await spawnChild(deps, await caller(), wish({ context: "fork" }));
      const run = [...books.runs.values()][0] as Run;
      books.runs.clear();
      if (isRun) books.runs.set("later", { ...run, runId: "later" });
      const refused = await spawnChild(deps, await caller(), wish({ context: "fork", thinking: "hard" }));
      expect(refused.code).toBe(isRun ? "conflict" : "invalid_arguments");
      expect((await store.sessions.list({}, {})).sessions).toHaveLength(isRun ? 2 : 1);
    }
  });
});

describe("in the foreground", () => {
  const request = wish({ background: false });

  test("[FAM15] the result has text, outcome and usage", async () => {
    const { deps, books, caller } = spawnGround(folder);
    const result = await spawnChild(deps, await caller({}, { run: running() }), request);
    expect(result).toMatchObject({ status: "ok", result: "done", outcome: "ok", usage: {} });
    expect(result).not.toHaveProperty("note");
    expect(books.requests[0]?.awaitedBy).toMatchObject({ by: { runId: "parent-run" } });
    expect(await spawnChild(deps, await caller({}, { run: running() }), request)).toEqual(result);
  });

  test("[FAM15] a wait that would cause a deadlock is not entered, and the result is announced instead", async () => {
    const { deps, books, caller } = spawnGround(folder);
    const whileWaiting = async () => ({ entered: false as const, cycle: ["a"] });
    const result = await spawnChild(deps, await caller({}, { run: running(), whileWaiting }), request);
    expect(result).toMatchObject({
      status: "ok",
      code: "wait_cycle",
      note: expect.stringContaining("deadlock"),
    });
    expect(result).not.toHaveProperty("result");
    expect([...books.waits.values()]).toEqual(["late"]);
  });

  test("[FAM15] a caller outside a run that stops waiting gets an announcement; a stopped run keeps its wait registered", async () => {
    const stopped = new AbortController();
    const untilEnded = async () => {
      stopped.abort(new Error("stopped"));
      throw stopped.signal.reason;
    };
    const { signal } = stopped;
    const outside = spawnGround(folder, undefined, { watcher: { untilEnded } });
    expect(await spawnChild(outside.deps, await outside.caller({}, { signal }), request)).toMatchObject({
      status: "ok",
      note: expect.stringContaining("will arrive"),
    });
    expect(outside.books.requests[0]?.awaitedBy).toMatchObject({ by: { owner: "here" } });
    const inside = spawnGround(folder, undefined, { watcher: { untilEnded } });
    const from = await inside.caller({}, { signal, run: running() });
    await expect(spawnChild(inside.deps, from, request)).rejects.toThrow("stopped");
    expect([...inside.books.waits.values()]).toEqual(["open"]);
  });
});

describe("attachments", () => {
  const attachments = [{ name: "a.txt", content: "hello" }];
  const own = () => join(folder, "store", "main", "attachments");

  test("[FAM38] are stored next to the session, and listed in its first message and in the result", async () => {
    const { deps, books, caller } = spawnGround(folder);
    const result = await spawnChild(deps, await caller(), wish({ attachments }));
    const [request] = books.requests;
    const place = join(own(), request?.session.sessionId ?? "");
    expect(readFileSync(join(place, "a.txt"), "utf8")).toBe("hello");
    expect(request?.child?.attachments).toBe(place);
    expect(JSON.stringify(request?.message)).toContain(`- a.txt (5 bytes): ${relative(folder, place)}/a.txt`);
    expect(JSON.stringify(request?.message)).not.toContain("hello");
    expect(result.attachments).toEqual({
      count: 1,
      totalBytes: 5,
      files: [{ name: "a.txt", bytes: 5, sha256: expect.stringMatching(/^2cf24d/) }],
    });
  });

  test("[FAM38] are mounted under mountPath, and stay if they are to be kept", async () => {
    const keep = { ...subagents, attachments: { ...subagents.attachments, keep: true } };
    const { deps, books, caller } = spawnGround(folder, [agentPolicy("main", { subagents: keep })]);
    await spawnChild(deps, await caller(), wish({ attachments, mountPath: "in" }));
    expect(existsSync(join(folder, "in", "a.txt"))).toBe(true);
    expect(books.requests[0]?.child).not.toHaveProperty("attachments");
  });

  test("of two concurrent identical calls belong to one child, and stay", async () => {
    for (const context of ["isolated", "fork"] as const) {
      const one = agentPolicy("main", { subagents: { ...subagents, maxChildren: 1 } });
      const { deps, books, caller } = spawnGround(folder, [one]);
      const from = await caller({}, { callId: context });
      const request = wish({ attachments, context });
      const [first, second] = await Promise.all([
        spawnChild(deps, from, request),
        spawnChild(deps, from, request),
      ]);
      expect(first).toMatchObject({ status: "ok" });
      expect(second).toEqual(first);
      expect(existsSync(join(books.requests[0]?.child?.attachments ?? "", "a.txt"))).toBe(true);
    }
  });

  test("[FAM38] are refused if there is no place for them", async () => {
    const { deps, caller } = spawnGround(folder, undefined, { files: fileBoundary() });
    expect(await spawnChild(deps, await caller(), wish({ attachments }))).toMatchObject({
      status: "error",
      code: "attachments_unavailable",
    });
  });

  test("[FAM17] as notes give the same result for an existing child, reuse existing files, and are otherwise requested", async () => {
    const { deps, books, caller } = spawnGround(folder);
    const request = wish({ attachments });
    const noted = withoutContents({ ...request }) as unknown as SpawnRequest;
    expect(await spawnChild(deps, await caller(), noted)).toMatchObject({
      status: "error",
      code: "attachments_content_missing",
    });
    const first = await spawnChild(deps, await caller(), request);
    expect(await spawnChild(deps, await caller(), noted)).toEqual(first);
    books.runs.clear();
    const [{ session } = { session: { sessionId: "" } }] = books.requests;
    await deps.store.sessions.remove({}, session.sessionId);
    await deps.store.sessions.purge({}, session.sessionId);
    expect(await spawnChild(deps, await caller(), noted)).toEqual(first);
    expect(readdirSync(join(own(), session.sessionId)).toSorted()).toEqual(["a.txt", "manifest.json"]);
  });
});

describe("a thread", () => {
  const delivery = { channel: "desk", to: "team", accountId: "a" };
  const request = wish({ thread: true, mode: "session", label: "Pages" });

  test("[FAM31] is opened under the label, bound to the child, and receives its answers", async () => {
    const opened: unknown[] = [];
    const openThread = async (target: unknown, title: string) => {
      opened.push([target, title]);
      return "t1";
    };
    const { deps, books, store, caller } = spawnGround(folder, undefined, {
      channels: threadChannels(openThread),
    });
    const result = await spawnChild(
      deps,
      await caller({ delivery: { ...delivery, threadId: "old" } }),
      request,
    );
    expect(opened).toEqual([[delivery, "Pages"]]);
    expect(result).toMatchObject({ status: "ok", mode: "session", threadId: "t1" });
    const [made] = books.requests;
    expect([...books.threads]).toEqual([["desk/t1", made?.session.key]]);
    expect(made?.options?.deliverTo).toEqual({ ...delivery, threadId: "t1" });
    expect(made?.child).not.toHaveProperty("archiveAfterMs");
    const child = await store.sessions.get({}, made?.session.sessionId ?? "");
    expect(child?.meta.delivery).toEqual({ ...delivery, threadId: "t1" });
  });

  test("[FAM31] opened for a spawn that is then refused is reported", async () => {
    const openThread = async () => "t1";
    const { deps, books, caller } = spawnGround(folder, undefined, {
      channels: threadChannels(openThread),
    });
    books.onAccept = () => {
      throw new SkeinError("children_exceeded", { active: 2, max: 2 });
    };
    expect(await spawnChild(deps, await caller({ delivery }), request)).toMatchObject({
      status: "forbidden",
      code: "children_exceeded",
      threadId: "t1",
      error: expect.stringContaining("The thread t1 had already been opened"),
    });
  });

  test("[FAM31] that cannot be opened refuses the spawn, and leaves nothing behind", async () => {
    const openThread = async () => Promise.reject(new Error("no rights"));
    const { deps, store, caller } = spawnGround(folder, undefined, {
      channels: threadChannels(openThread),
    });
    const attachments = [{ name: "a", content: "x" }];
    expect(await spawnChild(deps, await caller({ delivery }), { ...request, attachments })).toEqual({
      status: "error",
      code: "thread_unavailable",
      error: "Thread bind failed: no rights",
    });
    expect((await store.sessions.list({}, {})).sessions).toHaveLength(1);
    expect(readdirSync(join(folder, "store", "main", "attachments"))).toEqual([]);
  });
});
