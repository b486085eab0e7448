import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { familyTree } from "../../../test/support/cli-folder.ts";
import type { FolderCalls } from "../../../test/support/folder-calls.ts";
import { closeFolderCalls, openFolderCalls } from "../../../test/support/folder-calls.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { ChangeMethod } from "./handlers.ts";

let folder: FolderCalls;
const entryId = familyTree("main").path()[2]?.id ?? "";
const tripKey = "agent:main:session:trip";

beforeEach(async () => {
  folder = await openFolderCalls();
});
afterEach(closeFolderCalls);

describe("creating sessions", () => {
  test("create makes the named session with the given fields", async () => {
    const here = folder.as();
    const cwd = join(dirname(folder.root), "work");
    const made = await here.call("sessions.create", {
      key: "porto",
      label: "sea",
      model: "openai/gpt-5",
      cwd,
    });
    expect(made).toMatchObject({ key: "agent:main:session:porto", sessionId: "porto", label: "sea", cwd });
    expect((await folder.store.sessions.get({}, "porto"))?.meta).toEqual({
      label: "sea",
      model: "openai/gpt-5",
    });
    const hers = await here.call("sessions.create", { agentId: "Research", userId: "alice" });
    expect(hers.key).toBe(`agent:research:session:${hers.sessionId}`);
    expect((await folder.store.sessions.get({ userId: "alice" }, hers.sessionId))?.userId).toBe("alice");
  });

  test("a session works in its agent's folder by default", async () => {
    const cwd = join(folder.root, "lab");
    const configured = await openFolderCalls(`agents: { main: {}, research: { cwd: ${cwd} } }`);
    const made = await configured.as().call("sessions.create", { key: "agent:research:session:notes" });
    expect(made.cwd).toBe(cwd);
    expect((await configured.as().call("sessions.create", { key: "elsewhere" })).cwd).toBe(process.cwd());
  });

  test("fork copies the path to an entry, to the leaf, or nothing", async () => {
    const here = folder.as();
    const part = await here.call("sessions.fork", { key: "holiday", entryId, label: "by car" });
    expect(part).toMatchObject({ label: "by car", forkedFrom: { key: tripKey, sessionId: "trip", entryId } });
    expect(part.key).toBe(`agent:main:session:${part.sessionId}`);
    const trip = await folder.store.sessions.get({}, "trip");
    const whole = await here.call("sessions.fork", { key: "trip", sessionId: "again" });
    expect(whole.forkedFrom.entryId).toBe(trip?.leafId);
    const empty = await here.call("sessions.fork", { key: "trip", entryId: null });
    expect((await folder.store.sessions.get({}, empty.sessionId))?.leafId).toBe(null);
  });

  test("branch moves the leaf, also to before the root", async () => {
    const here = folder.as();
    const moved = await here.call("sessions.branch", { key: "trip", entryId });
    expect(moved).toEqual({ key: tripKey, sessionId: "trip", leafId: entryId });
    expect((await folder.store.sessions.get({}, "trip"))?.leafId).toBe(entryId);
    expect((await here.call("sessions.branch", { key: "trip", entryId: null })).leafId).toBe(null);
  });
});

describe("the label of an entry", () => {
  test("is appended to the log, and removed with null", async () => {
    const here = folder.as();
    const labelOf = async () => {
      const page = await folder.store.sessions.page({}, "trip", { along: "all", limit: 100 });
      const last = page?.entries.at(-1);
      return last?.type === "label" && last.targetId === entryId ? last.label : null;
    };
    const labeled = await here.call("sessions.label", { key: "trip", entryId, label: " start " });
    expect(labeled).toEqual({ key: tripKey, sessionId: "trip", entryId, label: "start" });
    expect(await labelOf()).toBe("start");
    expect(await here.call("sessions.label", { key: "trip", entryId, label: null })).not.toHaveProperty(
      "label",
    );
    expect(await labelOf()).toBe("");
  });
});

describe("a session of another application's agent", () => {
  const key = "agent:twin:acp:1";
  test.each<[ChangeMethod, Params<ChangeMethod>]>([
    ["sessions.fork", { key }],
    ["sessions.branch", { key, entryId: null }],
    ["sessions.patch", { key, model: "openai/gpt-5" }],
    ["sessions.patch", { key, thinkingLevel: "high" }],
    ["sessions.create", { key: "agent:twin:acp:2" }],
  ])("%s %j is refused, because that agent's memory does not follow", async (method, params) => {
    await folder.store.sessions.create({ agentId: "twin" }, { key, cwd: folder.root, meta: { acp: {} } });
    const before = await folder.store.sessions.find({}, { by: "key", key });
    await expect(folder.as().call(method, params)).rejects.toMatchObject({ code: "acp_unsupported" });
    expect(await folder.store.sessions.find({}, { by: "key", key })).toEqual(before);
    expect(await folder.store.sessions.find({}, { by: "key", key: "agent:twin:acp:2" })).toEqual([]);
  });
});

describe("session metadata", () => {
  test("rename sets and removes a label or a name, and replaces a patched name", async () => {
    const here = folder.as();
    expect((await here.call("sessions.rename", { key: "trip", label: "spring" })).label).toBe("spring");
    expect((await here.call("sessions.rename", { key: "spring", label: null })).label).toBeUndefined();
    await here.call("sessions.patch", { key: "trip", displayName: "Old" });
    const named = await here.call("sessions.rename", { key: "trip", name: " Kyoto " });
    expect(named.displayName).toBe("Kyoto");
    expect((await here.call("sessions.rename", { key: "trip", name: null })).displayName).toBeUndefined();
  });

  test("archive hides a session, and shows it again", async () => {
    const here = folder.as();
    expect((await here.call("sessions.archive", { key: "trip" })).archived).toBe(true);
    const back = await here.call("sessions.archive", { key: "trip", archived: false });
    expect(back.archived).toBeUndefined();
  });

  test("patch changes the given fields, null removes one, and the version increases", async () => {
    const here = folder.as();
    const before = await folder.store.sessions.get({}, "trip");
    const fields = {
      model: "anthropic/claude-sonnet-4-5",
      thinkingLevel: "high",
      verboseLevel: "full",
      sendPolicy: "deny",
    } as const;
    const ifVersion = before?.version ?? -1;
    const patched = await here.call("sessions.patch", { key: "trip", ...fields, ifVersion });
    expect(patched).toMatchObject({ ...fields, label: "holiday", version: ifVersion + 1 });
    const again = await here.call("sessions.patch", { key: "trip", model: null, sendPolicy: null });
    expect(again.model).toBeUndefined();
    expect(again).toMatchObject({ thinkingLevel: "high", label: "holiday" });
    expect((await here.call("sessions.patch", { key: "trip" })).version).toBe(again.version);
  });
});

describe("removing and restoring", () => {
  test("reset moves the key to a new session", async () => {
    const done = await folder.as().call("sessions.reset", { key: "main" });
    expect(done).toMatchObject({
      key: "agent:main:main",
      previous: { key: "agent:main:reset:home", sessionId: "home" },
    });
    expect((await folder.store.sessions.get({}, done.sessionId))?.key).toBe("agent:main:main");
  });

  test("delete moves a session to the trash, restore takes it out, and purge is permanent", async () => {
    const here = folder.as();
    const named = { key: tripKey, sessionId: "trip" };
    expect(await here.call("sessions.delete", { key: "trip" })).toEqual({ ...named, state: "trashed" });
    expect(await here.call("sessions.restore", { key: "holiday" })).toMatchObject(named);
    await here.call("sessions.delete", { key: "trip" });
    const purged = await here.call("sessions.delete", { key: tripKey, purge: true });
    expect(purged).toEqual({ ...named, state: "purged" });
    await expect(here.call("sessions.restore", { key: "trip" })).rejects.toMatchObject({ code: "not_found" });
    expect(await folder.store.sessions.get({ userId: "alice" }, "trip")).not.toBe(null);
  });

  test("redact leaves tombstones, also in copies", async () => {
    const here = folder.as();
    await here.call("sessions.fork", { key: "trip", sessionId: "copy" });
    const { key, sessions } = await here.call("sessions.redact", { key: "trip", entryIds: [entryId] });
    expect(key).toBe(tripKey);
    expect(sessions.map(({ sessionId }) => sessionId).toSorted()).toEqual(["copy", "trip"]);
    expect(JSON.stringify(await folder.store.sessions.entry({}, "copy", entryId))).toContain("[redacted]");
  });
});

type AnyCall = { [M in ChangeMethod]: [M, Params<M>] }[ChangeMethod];

/** Returns one call to each method that takes a session reference. */
const aboutOne = (key: string): AnyCall[] => [
  ["sessions.fork", { key }],
  ["sessions.branch", { key, entryId: null }],
  ["sessions.label", { key, entryId, label: "mine" }],
  ["sessions.rename", { key, label: "mine" }],
  ["sessions.rename", { key, name: "mine" }],
  ["sessions.archive", { key }],
  ["sessions.patch", { key, model: "a/b" }],
  ["sessions.reset", { key }],
  ["sessions.delete", { key }],
  ["sessions.delete", { key, purge: true }],
  ["sessions.restore", { key }],
  ["sessions.redact", { key, entryIds: [entryId] }],
];

const told = (call: Promise<unknown>) =>
  call.then(String, (error: Error & { code: string }) => `${error.code}: ${error.message}`);

describe("ownership", () => {
  test("[WLK3] another user's session looks like one that does not exist, and stays unchanged", async () => {
    await folder.store.sessions.create({}, { key: "agent:main:session:gone", sessionId: "gone", cwd: "/" });
    await folder.store.sessions.remove({}, "gone");
    const before = await folder.everything(null, "alice", "bob");
    const bob = folder.as({ tokenId: "b", user: "bob" });
    const references = ["trip", tripKey, "holiday", "main", "gone"];
    for (const reference of references) {
      for (const [method, params] of aboutOne(reference)) {
        const refused = await told(bob.call(method, params));
        const missing = await told(bob.call(method, { ...params, key: "nobody" } as typeof params));
        expect(refused).toBe(missing.replace("nobody", reference));
        expect(refused).toMatch(/^not_found: /);
      }
    }
    expect(await folder.everything(null, "alice", "bob")).toEqual(before);
  });

  test("[WLK3] two users with a session of the same name each change their own", async () => {
    const before = await folder.everything(null);
    const alice = folder.as({ tokenId: "a", user: "alice" });
    expect((await alice.call("sessions.rename", { key: "trip", label: "kyoto" })).label).toBe("kyoto");
    await alice.call("sessions.delete", { key: tripKey });
    expect(await folder.everything(null)).toEqual(before);
    const refused = alice.call("sessions.create", { key: "x", userId: "bob" });
    await expect(refused).rejects.toMatchObject({ code: "forbidden" });
  });
});

describe("refusals", () => {
  const refusals: [...AnyCall, string][] = [
    ["sessions.create", { key: "trip" }, "conflict"],
    ["sessions.create", { key: "other", sessionId: "TRIP" }, "conflict"],
    ["sessions.create", { key: "other", label: "holiday" }, "conflict"],
    ["sessions.create", { key: "a b" }, "invalid_session_id"],
    ["sessions.create", { key: "agent:research:main", agentId: "main" }, "invalid_key"],
    ["sessions.create", { key: "other", model: "nonsense" }, "invalid_arguments"],
    ["sessions.fork", { key: "trip", entryId: "nope" }, "not_found"],
    ["sessions.fork", { key: "trip", sessionId: "daily" }, "conflict"],
    ["sessions.fork", { key: "trip", label: "reports" }, "conflict"],
    ["sessions.branch", { key: "trip", entryId: "nope" }, "not_found"],
    ["sessions.label", { key: "trip", entryId: "nope", label: "x" }, "not_found"],
    ["sessions.rename", { key: "trip", label: "reports" }, "conflict"],
    ["sessions.rename", { key: "trip", label: " x" }, "invalid_arguments"],
    ["sessions.patch", { key: "trip", model: "openai/gpt-5", ifVersion: 77 }, "conflict"],
    ["sessions.patch", { key: "trip", ifVersion: 77 }, "conflict"],
    ["sessions.patch", { key: "trip", label: "reports", model: "openai/gpt-5" }, "conflict"],
    ["sessions.patch", { key: "trip", label: "new", model: "nonsense" }, "invalid_arguments"],
    ["sessions.delete", { key: "main" }, "forbidden"],
    ["sessions.delete", { key: "agent:research:main" }, "forbidden"],
    ["sessions.delete", { key: "trip", purge: true }, "not_found"],
    ["sessions.delete", { key: "tri" }, "not_found"],
    ["sessions.restore", { key: "old-tr" }, "not_found"],
    ["sessions.restore", { key: "trip" }, "not_found"],
    ["sessions.redact", { key: "trip", entryIds: ["nope"] }, "not_found"],
  ];
  test.each(refusals)("%s %j is %s, and nothing has changed", async (method, params, code) => {
    const before = await folder.everything(null, "alice");
    await expect(folder.as().call(method, params)).rejects.toMatchObject({ code });
    expect(await folder.everything(null, "alice")).toEqual(before);
  });

  test("lineage cannot be patched", async () => {
    const params = { key: "trip", spawnedBy: "agent:main:main" } as Params<"sessions.patch">;
    await expect(folder.as().call("sessions.patch", params)).rejects.toThrow(
      /spawnedBy is not a known field/,
    );
  });

  test("the session that all senders share cannot be deleted", async () => {
    const global = await openFolderCalls("session: { scope: global }");
    await global.as().call("sessions.create", { key: "main" });
    const refused = global.as().call("sessions.delete", { key: "global" });
    await expect(refused).rejects.toMatchObject({ code: "forbidden" });
  });
});

describe("visible fields", () => {
  test("folders of the machine are shown only to admins", async () => {
    const writer = folder.as({ tokenId: "w", scopes: ["read", "write"], user: null });
    const made = await writer.call("sessions.create", { key: "porto" });
    const forked = await writer.call("sessions.fork", { key: "trip" });
    const renamed = await writer.call("sessions.rename", { key: "trip", label: "spring" });
    const archived = await writer.call("sessions.archive", { key: "trip" });
    for (const payload of [made, forked, renamed, archived]) expect(payload.cwd).toBeUndefined();
    const cwd = writer.call("sessions.create", { key: "there", cwd: "/etc" });
    await expect(cwd).rejects.toThrow(/Only a token with the "admin" scope can set cwd/);
    expect((await folder.as().call("sessions.archive", { key: "trip" })).cwd).toBe("/home/ann/trip");
  });
});
