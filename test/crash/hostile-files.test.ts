import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createIdSource } from "../../src/core/ids.ts";
import type { Recovery } from "../../src/entry-store.ts";
import type { Disk } from "../../src/store/files/disk.ts";
import { realDisk } from "../../src/store/files/disk.ts";
import type { FilesStoreOptions } from "../../src/store/files/store.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { sessionText, userLine } from "../support/session-text.ts";
import { append, create, ids } from "../support/store-calls.ts";

const scope = { agentId: "main" };
const ann = { userId: "ann", agentId: "main" };
const bob = { userId: "bob", agentId: "main" };
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "skein-hostile-"));
  folders.push(made);
  return made;
}

function sessionsOf(root: string, home = ""): string {
  const made = join(root, home, "agents", "main", "sessions");
  mkdirSync(made, { recursive: true });
  return made;
}

/** A session in pi's format. */
function foreign(id: string): string {
  return sessionText(userLine("a", null, "Hello")).replace('"id":"s"', JSON.stringify({ id }).slice(1, -1));
}

/** A log with a header that names its store. */
function log(id: string, skein: object): string {
  const header = { type: "session", version: 3, id, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/", skein };
  return `${[header, userLine("a", null, "Hello")].map((line) => JSON.stringify(line)).join("\n")}\n`;
}

async function opened(root: string, options: Partial<FilesStoreOptions> = {}) {
  const reports: Recovery[] = [];
  const report = (found: Recovery) => void reports.push(found);
  const store = await openFilesStore({ root, report, index: "in place", ...options });
  return { store, reports };
}

function loseDatabases(root: string): void {
  for (const name of readdirSync(root).filter((each) => each.includes(".db"))) rmSync(join(root, name));
}

describe("claims inside a log", () => {
  test.each(["", ".", "..", "../users/bob", "/", "trash", 7, null])(
    "[ADM1] a log with the uid %j is adopted under another uid, and purging it removes nothing else",
    async (uid) => {
      const root = folder();
      const { store } = await opened(root);
      for (const each of [ann, bob]) {
        await create(store, each, "s");
        await append(store, each, "s", "precious");
      }
      await create(store, scope, "gone");
      await store.sessions.remove(scope, "gone");
      writeFileSync(
        join(sessionsOf(root), "evil.log.jsonl"),
        log("evil", { uid, agent: "main", key: "agent:main:session:evil" }),
      );
      await store.upkeep.check({ fix: true });
      expect(await store.sessions.remove(scope, "evil")).toBe(true);
      expect(await store.sessions.purge(scope, "evil")).toBe(true);
      for (const each of [ann, bob]) expect(await ids(store, each, "s")).toHaveLength(1);
      expect((await store.sessions.restore(scope, "gone")).sessionId).toBe("gone");
      await store.close();
    },
  );

  test("[ADM1] a file whose name is not a session ID, and an invalid trash folder or agent, are not adopted", async () => {
    const root = folder();
    const sessions = sessionsOf(root);
    const uid = createIdSource()();
    for (const name of ["main", "-x", "a.lock"])
      writeFileSync(join(sessions, `${name}.log.jsonl`), log(name, { uid: createIdSource()() }));
    for (const [name, agent] of [
      ["notes", "main"],
      [uid, "../../x"],
    ] as const) {
      mkdirSync(join(root, "trash", name), { recursive: true });
      writeFileSync(join(root, "trash", name, "t.log.jsonl"), log("t", { uid, agent }));
    }
    const { store, reports } = await opened(root);
    expect(reports.map(({ kind }) => kind)).toEqual(Array(5).fill("not_taken_in"));
    expect((await store.sessions.list(scope, {})).sessions).toEqual([]);
    expect(await store.sessions.trashed(scope)).toEqual([]);
    await store.close();
  });

  test("[ADM1] a key in another spelling, or of another agent, does not create a second session", async () => {
    const root = folder();
    const sessions = sessionsOf(root);
    writeFileSync(join(sessions, "one.log.jsonl"), log("one", { key: "agent:MAIN:session:first" }));
    writeFileSync(join(sessions, "two.log.jsonl"), log("two", { key: "agent:other:main" }));
    const { store } = await opened(root);
    const keys = (await store.sessions.list(scope, {})).sessions.map(({ key }) => key);
    expect(keys.toSorted()).toEqual(["agent:main:session:first", "agent:main:session:two"]);
    await store.close();
  });
});

describe("the owner of a file", () => {
  const namespace = ({ userId }: { userId?: string }) =>
    userId === undefined ? ["local"] : ["people", userId, "v1"];

  test("the folders of a namespace identify the user when the databases are lost", async () => {
    const root = folder();
    const first = await opened(root, { namespace });
    for (const each of [scope, ann]) await create(first.store, each, "s");
    await first.store.close();
    const said = (home: string) => JSON.parse(readFileSync(join(root, home, "user.json"), "utf8"));
    expect([said("local"), said("people/ann/v1")]).toEqual([{ userId: null }, { userId: "ann" }]);
    writeFileSync(join(sessionsOf(root, "people/ann/v1"), "pi.jsonl"), foreign("pi"));
    writeFileSync(join(sessionsOf(root, "local"), "mine.jsonl"), foreign("mine"));
    loseDatabases(root);
    const { store } = await opened(root, { namespace });
    const of = async (userId?: string) =>
      (
        await store.sessions.list({ agentId: "main", ...(userId === undefined ? {} : { userId }) }, {})
      ).sessions
        .map(({ sessionId }) => sessionId)
        .toSorted();
    expect([await of(), await of("ann"), await of("v1"), await of("local")]).toEqual([
      ["mine", "s"],
      ["pi", "s"],
      [],
      [],
    ]);
    await store.close();
  });

  test("a folder has one user: a second one is refused, also after the databases are lost", async () => {
    for (const shared of [["all"], ["people", "all"]]) {
      const root = folder();
      const first = await opened(root, { namespace: () => shared });
      const results = await Promise.allSettled([
        create(first.store, ann, "hers"),
        create(first.store, bob, "his"),
      ]);
      expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      await first.store.close();
      const owner = results[0]?.status === "fulfilled" ? ann : bob;
      const other = owner === ann ? bob : ann;
      expect(JSON.parse(readFileSync(join(root, ...shared, "user.json"), "utf8"))).toEqual({
        userId: owner.userId,
      });
      loseDatabases(root);
      const { store } = await opened(root, { namespace: () => shared });
      await expect(create(store, other, "late")).rejects.toMatchObject({ code: "conflict" });
      await expect(store.blobs.put(other, Buffer.from("b"))).rejects.toMatchObject({ code: "conflict" });
      expect(await store.sessions.get(other, owner === ann ? "hers" : "his")).toBeNull();
      await store.close();
    }
  });

  test("[OST16] a file in a folder of an unknown user, or that names another user, is not touched", async () => {
    const root = folder();
    writeFileSync(join(sessionsOf(root, "people/ann/v1"), "pi.jsonl"), foreign("pi"));
    const uid = createIdSource()();
    const evil = join(sessionsOf(root, "users/bob"), "evil.log.jsonl");
    writeFileSync(evil, log("evil", { uid, user: "ann", agent: "main" }));
    writeFileSync(join(sessionsOf(root, "users/bob"), "e2.jsonl"), log("e2", { user: "ann" }));
    const { store, reports } = await opened(root, { namespace });
    expect(reports.map(({ kind }) => kind)).toEqual(Array(3).fill("not_taken_in"));
    const found = await store.upkeep.check({ fix: true });
    expect(found.map(({ fixable }) => fixable)).toEqual([false, false, false]);
    expect(store.upkeep.users()).toEqual([]);
    expect(existsSync(join(sessionsOf(root, "people/ann/v1"), "pi.jsonl"))).toBe(true);
    await store.close();
  });

  test("[OST16] a user and an agent may be named node_modules, or agents", async () => {
    const root = folder();
    const { store } = await opened(root);
    const places = ["node_modules", "agents"].map((userId) => ({ userId, agentId: "node_modules" }));
    for (const each of places)
      await store.sessions.create(each, { key: "agent:node_modules:main", sessionId: "s", cwd: "/" });
    const target = join(folder(), "copy");
    await store.upkeep.backup(target);
    await store.close();
    loseDatabases(target);
    const copy = await opened(target);
    for (const each of places) expect((await copy.store.sessions.get(each, "s"))?.userId).toBe(each.userId);
    await copy.store.close();
  });
});

describe("an interrupted adoption", () => {
  const names = ["p.jsonl", "2026-01-01T00-00-00-000Z_p.jsonl"];

  test.each(names)(
    "[FS20] %s is adopted once the disk has room again, and nothing exists before",
    async (name) => {
      const root = folder();
      writeFileSync(join(sessionsOf(root), name), foreign("p"));
      const full: Disk = {
        ...realDisk,
        create: (path) => {
          if (path.includes(".log.jsonl")) throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
          return realDisk.create(path);
        },
      };
      const first = await opened(root, { disk: full });
      expect(first.reports.map(({ kind }) => kind)).toEqual(["not_taken_in"]);
      expect(await first.store.sessions.find(scope, { by: "key", key: "agent:main:session:p" })).toEqual([]);
      await first.store.close();
      const { store } = await opened(root);
      await store.upkeep.check({ fix: true });
      expect(await ids(store, scope, "p")).toEqual(["a"]);
      await store.close();
    },
  );

  test.each(names)("[FS20] %s whose adoption died at any step becomes a session in the end", async (name) => {
    const root = folder();
    writeFileSync(join(sessionsOf(root), name), foreign("p"));
    const left: string[] = [];
    /** The folder as a process leaves it when it dies before a given step. */
    const dying = <T>(act: () => T): T => {
      const copy = folder();
      cpSync(root, copy, { recursive: true });
      left.push(copy);
      return act();
    };
    const disk: Disk = {
      ...realDisk,
      create: (path) => dying(() => realDisk.create(path)),
      rename: (from, to) => dying(() => realDisk.rename(from, to)),
      link: (from, to) => dying(() => realDisk.link(from, to)),
      syncFolder: (path) => dying(() => realDisk.syncFolder(path)),
    };
    await (await opened(root, { disk })).store.close();
    expect(left.length).toBeGreaterThan(5);
    for (const [step, copy] of left.entries()) {
      for (const each of ["p.jsonl.lock", "sessions.json"])
        rmSync(join(sessionsOf(copy), each), { force: true });
      const { store } = await opened(copy);
      await store.upkeep.check({ fix: true });
      expect([step, await ids(store, scope, "p")]).toEqual([step, ["a"]]);
      const found = (await store.upkeep.check({ fix: false })).filter(({ area }) => area === "logs");
      expect([step, found.map(({ severity, what }) => `${severity} ${what}`)]).toEqual([
        step,
        [expect.stringMatching(/^note It was adopted as agent:main:session:p on /)],
      ]);
      await store.sessions.patch(scope, "p", { label: "kept" });
      expect((await store.sessions.get(scope, "p"))?.meta.label).toBe("kept");
      await store.close();
    }
  });

  test("[FS20] entries that another program adds during the adoption are in the log", async () => {
    const root = folder();
    const sessions = sessionsOf(root);
    writeFileSync(join(sessions, "g.jsonl"), foreign("g"));
    const added = [userLine("b", "a", "more"), userLine("c", "b", "and more")];
    const disk: Disk = {
      ...realDisk,
      create: (path) => {
        const line = path.includes("g.log.jsonl") ? added.shift() : undefined;
        const file = existsSync(join(sessions, "g.jsonl")) ? "g.jsonl" : "g.jsonl.orig";
        if (line !== undefined) appendFileSync(join(sessions, file), `${JSON.stringify(line)}\n`);
        return realDisk.create(path);
      },
    };
    const { store } = await opened(root, { disk });
    expect(await ids(store, scope, "g")).toEqual(["a", "b", "c"]);
    await store.close();
  });

  test("[FS20] two files of one session: one is adopted, the other left alone", async () => {
    const root = folder();
    for (const name of names) writeFileSync(join(sessionsOf(root), name), foreign("p"));
    const { store, reports } = await opened(root);
    expect(await ids(store, scope, "p")).toEqual(["a"]);
    expect(reports.map(({ kind }) => kind).toSorted()).toEqual(["adopted", "not_taken_in"]);
    await store.close();
  });
});

describe("foreign files", () => {
  test("unexpected folders, links and files cause no failure, and the target of a link is not touched", async () => {
    const root = folder();
    const outside = folder();
    const { store } = await opened(root);
    await create(store, ann, "private");
    await append(store, ann, "private", "hers");
    await create(store, bob, "s");
    await store.close();
    const sessions = sessionsOf(root, "users/bob");
    for (const name of ["notes.jsonl", "x.log.jsonl", "sessions.json.orig", "y.jsonl.lock", ".z.tmp"])
      mkdirSync(join(sessions, name));
    for (const path of ["agents", "users/bob/agents"]) mkdirSync(join(root, path), { recursive: true });
    for (const path of ["agents/readme", "users/readme", "trash", "users/bob/agents/main/blobs"])
      writeFileSync(join(root, path), "text");
    symlinkSync(join(outside, "nothing"), join(sessions, "broken.jsonl"));
    symlinkSync(join(sessionsOf(root, "users/ann"), "private.log.jsonl"), join(sessions, "private.jsonl"));
    symlinkSync(join(sessionsOf(root, "users/ann"), "private.log.jsonl"), join(sessions, "stolen.log.jsonl"));
    const theirs = sessionsOf(outside);
    writeFileSync(join(theirs, "pi.jsonl"), foreign("pi"));
    writeFileSync(join(theirs, ".old.tmp"), "half");
    writeFileSync(join(theirs, "pi.jsonl.lock"), "");
    utimesSync(join(theirs, ".old.tmp"), 1, 1);
    symlinkSync(outside, join(root, "users", "eve"));
    symlinkSync(join(outside, "agents", "main"), join(root, "users", "bob", "agents", "linked"));
    mkdirSync(join(root, "users", "bob", "agents", "third"));
    symlinkSync(theirs, join(root, "users", "bob", "agents", "third", "sessions"));
    const before = readdirSync(theirs).toSorted();
    for (const isLost of [false, true]) {
      if (isLost) loseDatabases(root);
      const again = await opened(root);
      expect((await again.store.sessions.get(bob, "s"))?.sessionId).toBe("s");
      expect(await again.store.sessions.get(bob, "private")).toBeNull();
      expect(await again.store.sessions.get(bob, "stolen")).toBeNull();
      expect(await again.store.sessions.get(bob, "notes")).toBeNull();
      await again.store.upkeep.check({ fix: true });
      await again.store.upkeep.sweepBlobs();
      const target = join(folder(), "copy");
      await again.store.upkeep.backup(target);
      const copied = readdirSync(target, { recursive: true, encoding: "utf8" });
      expect(copied.filter((name) => /stolen|broken|eve|linked|third/.test(name))).toEqual([]);
      expect(again.store.upkeep.users().toSorted()).toEqual(["ann", "bob"]);
      await again.store.close();
      expect(readdirSync(theirs).toSorted()).toEqual(before);
    }
  });

  test("[FS20] a folder that is not an agent's is not searched for sessions", async () => {
    const root = folder();
    const { store } = await opened(root);
    const sessions = join(root, "agents", "Foo Bar", "sessions");
    mkdirSync(sessions, { recursive: true });
    writeFileSync(join(sessions, "w.jsonl"), foreign("w"));
    expect(await store.sessions.get({}, "w")).toBeNull();
    expect(readdirSync(sessions)).toEqual(["w.jsonl"]);
    await store.close();
  });
});

describe("a check and a backup during other work", () => {
  test("[FS26] a fix leaves the lock of a living process, and a check writes nothing at all", async () => {
    const root = folder();
    const first = await opened(root);
    await create(first.store, scope, "s");
    await append(first.store, scope, "s", "a");
    await first.store.close();
    const sessions = sessionsOf(root);
    const lock = join(sessions, "s.jsonl.lock");
    const holder = { pid: process.pid, started: null, host: "elsewhere", bootId: null, token: "t" };
    writeFileSync(lock, JSON.stringify({ ...holder, createdAt: Date.now() }));
    writeFileSync(join(sessions, "pi.jsonl"), foreign("pi"));
    const refuse = () => {
      throw Object.assign(new Error("EROFS: read-only"), { code: "EROFS" });
    };
    let isReadOnly = false;
    const writing = [
      "open",
      "create",
      "openExisting",
      "makeFolder",
      "rename",
      "link",
      "unlink",
      "touch",
    ] as const;
    const guarded = Object.fromEntries(
      writing.map((name) => [
        name,
        (...args: never[]) => (isReadOnly ? refuse() : Reflect.apply(realDisk[name], realDisk, args)),
      ]),
    );
    const { store } = await opened(root, { disk: { ...realDisk, ...guarded } as Disk });
    isReadOnly = true;
    const found = await store.upkeep.check({ fix: false });
    isReadOnly = false;
    expect(found.map(({ area, fixed }) => `${area} ${fixed}`)).toContain("logs false");
    await store.upkeep.check({ fix: true });
    expect(JSON.parse(readFileSync(lock, "utf8")).token).toBe("t");
    rmSync(lock);
    await store.close();
  });

  test("[BAK1] sessions that are moved, replaced or redacted during the copy are complete in it", async () => {
    const root = folder();
    const { store } = await opened(root);
    for (const name of ["a", "b", "c", "d"]) {
      await create(store, scope, name);
      await append(store, scope, name, `in ${name}`);
    }
    await store.sessions.remove(scope, "d");
    await store.state.set(scope, "c", "mod", 1);
    await append(store, scope, "c", "short", "the last that was acknowledged");
    const before = await ids(store, scope, "c");
    const target = join(folder(), "copy");
    const jobs: Promise<unknown>[] = [];
    await store.upkeep.backup(target, (done) => {
      if (done > 0 || jobs.length > 0) return;
      jobs.push(
        store.sessions.remove(scope, "b"),
        store.sessions.restore(scope, "d"),
        store.state.set(scope, "c", "mod", { much: "a value that is longer than before" }),
        store.sessions.redact(scope, "c", [before[1] ?? ""]),
      );
    });
    await Promise.all(jobs);
    await store.close();
    const copy = await opened(target);
    expect(await ids(copy.store, scope, "b")).toHaveLength(1);
    expect(await ids(copy.store, scope, "c")).toEqual(before);
    expect([1, { much: "a value that is longer than before" }]).toContainEqual(
      (await copy.store.state.get(scope, "c", "mod"))?.value,
    );
    expect((await copy.store.sessions.restore(scope, "d")).sessionId).toBe("d");
    expect(await ids(copy.store, scope, "d")).toHaveLength(1);
    const found = await copy.store.upkeep.check({ fix: false });
    expect(found.filter(({ area }) => area === "logs")).toEqual([]);
    await copy.store.close();
  });
});
