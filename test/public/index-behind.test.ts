import { readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { realDisk } from "../../src/store/files/disk.ts";
import { IndexThread } from "../../src/store/files/index-thread.ts";
import { sessionPaths, trashedPaths, workDbName } from "../../src/store/files/layout.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { WorkDb } from "../../src/store/files/work-db.ts";
import { run } from "../support/cli.ts";
import { call, withParts } from "../support/family.ts";
import { closeAll, newFolder } from "../support/skein.ts";
import { append, create, listed as idsListed } from "../support/store-calls.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

afterEach(async () => {
  vi.restoreAllMocks();
  await closeAll();
});

const keysOf = (result: Readonly<Record<string, unknown>>) =>
  (result.sessions as { readonly key: string }[]).map(({ key }) => key).toSorted();

/** The index makes no progress until `release` is called. */
function stallIndex(): { release(): void } {
  const stalled = vi
    .spyOn(IndexThread.prototype, "catchUp")
    .mockResolvedValue({ behind: 1, unreadable: 0, problems: [] });
  return { release: () => stalled.mockRestore() };
}

describe("a list made while the index is behind", () => {
  test("[STE1] reports that the index is behind", async () => {
    const family = await withParts({}, { dir: newFolder() });
    const index = stallIndex();
    await family.make("agent:main:main");
    const early = await family.call("sessions_list", {});
    expect(early).toMatchObject({ count: 0, indexing: { behind: 1 } });
    index.release();
    const late = await family.call("sessions_list", {});
    expect(keysOf(late)).toEqual(["main"]);
    expect(late).not.toHaveProperty("indexing");
  });

  test("[STE1] reports it over RPC and on the command line", async () => {
    const gateway = await wholeGateway();
    try {
      const index = stallIndex();
      await gateway.rpc("sessions.create", { key: "agent:main:session:trip" });
      const { body } = await gateway.rpc("sessions.list");
      expect(body).toMatchObject({ count: 0, indexing: { behind: 1 } });
      const { out } = await run(["sessions", "ls", "--json", "--dir", gateway.root]);
      expect(JSON.parse(out)).toMatchObject({ count: 0, indexing: { behind: 1 } });
      index.release();
    } finally {
      await gateway.close();
    }
  });

  test("[STE1] includes sessions of another agent that the index had not read yet", async () => {
    const settings = { tools: { agentToAgent: { enabled: true }, sessions: { visibility: "all" } } };
    const family = await withParts({}, { dir: newFolder(), settings, agent: { visibility: "all" } });
    await family.make("agent:main:main");
    await family.make("agent:far:main");
    // The index catches up between the query for the agents and the list itself.
    const { catchUp } = IndexThread.prototype;
    vi.spyOn(IndexThread.prototype, "catchUp")
      .mockImplementationOnce(async () => ({ behind: 2, unreadable: 0, problems: [] }))
      .mockImplementation(function (this: IndexThread, forMs) {
        return catchUp.call(this, forMs);
      });
    let listed = await family.call("sessions_list", {});
    while (listed.indexing !== undefined) listed = await family.call("sessions_list", {});
    expect(keysOf(listed)).toEqual(["agent:far:main", "main"]);
  });

  test("[STE1] is complete, with child sessions, although the log of another session is lost", async () => {
    const dir = newFolder();
    const family = await withParts(
      {
        Plan: [call("sessions_spawn", { task: "Geese" }), { text: "Soon." }, { text: "Done." }],
        Geese: [{ text: "12" }],
      },
      { dir },
    );
    const lost = await family.make("agent:main:session:lost");
    const turn = family.skein.session().send("Plan");
    await turn.result;
    await family.settled(turn.runId);
    for (const file of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
      if (file.includes(lost.sessionId)) rmSync(join(dir, file), { recursive: true, force: true });
    }
    let listed = await family.call("sessions_list", {});
    for (let again = 0; listed.indexing !== undefined && again < 1000; again += 1) {
      listed = await family.call("sessions_list", {});
    }
    expect(listed).not.toHaveProperty("indexing");
    const main = (listed.sessions as { key: string; childSessions?: unknown[] }[]).find(
      ({ key }) => key === "main",
    );
    expect(main?.childSessions).toHaveLength(1);
  });
});

describe("a machine that is too busy to meet the deadline", () => {
  const scope = { agentId: "main" };
  const longAfter = () => {
    let now = 0;
    vi.spyOn(performance, "now").mockImplementation(() => {
      now += 1_000_000;
      return now;
    });
  };

  test("[STE1] lists every session of a small store", async () => {
    const store = await openFilesStore({ root: newFolder(), index: "in place" });
    const names = Array.from({ length: 100 }, (_, at) => `s${at}`);
    for (const name of names) await create(store, scope, name);
    longAfter();
    const { sessions, behind } = await store.sessions.list(scope, { limit: 200 });
    expect([sessions.length, behind]).toEqual([100, 0]);
    await store.close();
  });

  test("[STE1] reports it if more has changed than it can index", async () => {
    const store = await openFilesStore({ root: newFolder(), index: "in place" });
    await create(store, scope, "long");
    for (const name of ["a", "b"]) await append(store, scope, "long", `${name} ${"x".repeat(200 * 1024)}`);
    longAfter();
    expect(await store.sessions.list(scope, {})).toMatchObject({ sessions: [], behind: 1 });
    vi.restoreAllMocks();
    await store.upkeep.bringUpIndex();
    expect(await store.sessions.list(scope, {})).toMatchObject({
      sessions: [{ sessionId: "long" }],
      behind: 0,
    });
    await store.close();
  });
});

describe("a session removed while the index reads it", () => {
  test.each(["trashed", "purged"])("that is %s is not an error", async (end) => {
    const root = newFolder();
    const reported: unknown[] = [];
    let beforeOpening: (path: string) => void = () => undefined;
    const openExisting = (path: string) => {
      beforeOpening(path);
      return realDisk.openExisting(path);
    };
    const disk = { ...realDisk, openExisting };
    const store = await openFilesStore({ root, disk, report: (found) => reported.push(found) });
    const scope = { agentId: "main" };
    await create(store, scope, "kept");
    await create(store, scope, "removed");
    const others = new WorkDb(join(root, workDbName));
    const row = others.byId(null, "removed");
    if (row === null) throw new Error("the session was not created");
    const { log } = sessionPaths(root, row, row.sessionId);
    // Simulates another process at the worst moment, when the index has read the session's row and is about to open its
    // log.
    beforeOpening = (path) => {
      if (path !== log || others.byUid(row.uid)?.state !== "live") return;
      others.trash(row, undefined, 1);
      const away = trashedPaths(root, row.uid, row.sessionId).log;
      realDisk.makeFolder(dirname(away));
      renameSync(log, away);
      if (end === "purged") others.forget([row.uid], { what: "session", name: row.uid, at: 1 });
    };
    expect(await idsListed(store, scope)).toEqual(["kept"]);
    expect(others.byUid(row.uid)?.state).toBe(end === "purged" ? undefined : "trashed");
    expect(reported).toEqual([]);
    others.close();
    await store.close();
  });
});
