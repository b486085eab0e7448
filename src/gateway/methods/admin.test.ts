import { afterEach, describe, expect, test } from "vitest";
import { acceptIn, withRuns } from "../../../test/support/cli-runs.ts";
import type { FolderCalls } from "../../../test/support/folder-calls.ts";
import { closeFolderCalls, openFolderCalls } from "../../../test/support/folder-calls.ts";
import { effectiveConfigText } from "../../config/effective.ts";
import { upkeepHandlers } from "./admin.ts";
import { localCalls } from "./local-calls.ts";

afterEach(closeFolderCalls);

const day = 86_400_000;

/** Returns the methods with a clock set to this long after the last session update. */
async function laterThan(ms: number, { deps, store }: FolderCalls) {
  const { sessions } = await store.sessions.list({}, { limit: 1000 });
  const now = Math.max(...sessions.map(({ updatedAt }) => updatedAt)) + ms;
  return localCalls(upkeepHandlers({ ...deps, clock: { now: () => now } }));
}

describe("maintenance.run", () => {
  const rules = (mode: string) =>
    `session: { maintenance: { mode: ${mode}, pruneAfter: 30d, trashAfter: null } }`;

  test.each([
    ["warn", {}],
    ["enforce", { dryRun: true }],
  ])("in mode %s with %j only reports what would be done, for every user", async (mode, params) => {
    const folder = await openFolderCalls(rules(mode));
    const before = await folder.everything(null, "alice");
    const calls = await laterThan(31 * day, folder);
    const report = await calls.call("maintenance.run", params);
    expect(report).toMatchObject({ mode, done: [] });
    const due = report.decisions.map(({ userId, sessionId }) => `${userId ?? "nobody"} ${sessionId}`);
    expect(due).toEqual(expect.arrayContaining(["nobody trip", "alice trip", "nobody daily"]));
    expect(due).not.toContain("nobody home");
    expect(await folder.everything(null, "alice")).toEqual(before);
  });

  test("in mode enforce acts, but on no session with an open run", async () => {
    const folder = await openFolderCalls(rules("enforce"));
    await withRuns(folder.root, async (runs, store) => {
      const session = await store.sessions.get({}, "daily");
      if (session === null) throw new Error("the seed has it");
      await acceptIn(runs, session, "wait for it", "k1");
    });
    const calls = await laterThan(31 * day, folder);
    const { decisions, done } = await calls.call("maintenance.run", {});
    expect(done).toEqual(decisions);
    expect(done.map(({ sessionId }) => sessionId)).not.toContain("daily");
    expect(await folder.store.sessions.get({}, "daily")).not.toBe(null);
    expect(await folder.store.sessions.get({}, "trip")).toBe(null);
    expect(await folder.store.sessions.get({ userId: "alice" }, "trip")).toBe(null);
  });

  test("stops without effect when no caller waits anymore", async () => {
    const folder = await openFolderCalls(rules("enforce"));
    const before = await folder.everything(null, "alice");
    const calls = await laterThan(31 * day, folder);
    const call = calls.call("maintenance.run", {}, { signal: AbortSignal.abort() });
    await expect(call).rejects.toThrow(/abort/);
    expect(await folder.everything(null, "alice")).toEqual(before);
  });

  test("requires a token for every user", async () => {
    const folder = await openFolderCalls();
    const calls = folder.as({ tokenId: "a", user: null });
    for (const method of ["maintenance.run", "config.get"] as const)
      await expect(calls.call(method, {})).rejects.toMatchObject({ code: "forbidden" });
    await expect(calls.call("users.remove", { userId: "alice" })).rejects.toMatchObject({
      code: "forbidden",
    });
  });
});

describe("config.get", () => {
  test("returns the configuration with its sources, without secrets", async () => {
    const folder = await openFolderCalls(
      'models: { providers: { anthropic: { apiKey: "sk-ant-hidden-7" } } }\nlanes: { main: 3 }\n',
    );
    const { file, problems, effective } = await folder.as().call("config.get", {});
    expect({ file, problems }).toEqual({ file: folder.deps.loaded.file, problems: [] });
    expect(effective).toBe(effectiveConfigText(folder.deps.loaded));
    expect(effective).toMatch(/main: 3 # .*skein\.yaml:2/);
    expect(effective).toContain("***");
    expect(effective).not.toContain("hidden");
  });
});

describe("users.remove", () => {
  test("[ERZ7] removes everything of a user, including its tokens, and nothing of other users", async () => {
    const folder = await openFolderCalls();
    const make = async (user: string | null) =>
      (await folder.tokens.create({ name: "x", scopes: ["read", "admin"], user }, null)).secret;
    const [alices, bobs, nobodys, everybodys] = await Promise.all(["alice", "bob", null, "*"].map(make));
    const before = await folder.everything(null);
    const done = await folder.as().call("users.remove", { userId: "alice" });
    expect(done).toEqual({ userId: "alice", sessions: 1 });
    expect(await folder.store.sessions.get({ userId: "alice" }, "trip")).toBe(null);
    expect(await folder.tokens.verify(alices)).toBe(null);
    for (const secret of [bobs, nobodys, everybodys])
      expect(await folder.tokens.verify(secret)).not.toBe(null);
    expect(await folder.everything(null)).toEqual(before);
    expect(await folder.as().call("users.remove", { userId: "alice" })).toMatchObject({ sessions: 0 });
  });

  test("[ERZ7] tokens are revoked first, so that a failed removal lets no one in", async () => {
    const folder = await openFolderCalls();
    const { secret } = await folder.tokens.create({ name: "x", scopes: ["read"], user: "alice" }, null);
    const store = {
      ...folder.store,
      purgeUser: async () => {
        throw new Error("the disk is gone");
      },
    };
    const calls = localCalls(upkeepHandlers({ ...folder.deps, store }));
    await expect(calls.call("users.remove", { userId: "alice" })).rejects.toThrow("the disk is gone");
    expect(await folder.tokens.verify(secret)).toBe(null);
  });

  test("[ERZ7] a user named like the marker for all users removes no one else's token", async () => {
    const folder = await openFolderCalls();
    const { secret } = await folder.tokens.create({ name: "x", scopes: ["admin"], user: "*" }, null);
    expect(await folder.as().call("users.remove", { userId: "*" })).toEqual({
      userId: "*",
      sessions: 0,
      found: false,
    });
    expect(await folder.tokens.verify(secret)).not.toBe(null);
  });
});
