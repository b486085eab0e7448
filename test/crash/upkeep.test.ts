import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { createStore } from "../../src/entry-store.ts";
import { supportProgram } from "../support/programs.ts";
import { append, create, ids, said } from "../support/store-calls.ts";

const ann = { userId: "ann", agentId: "main" };
const scope = { agentId: "main" };
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "skein-upkeep-"));
  folders.push(made);
  return made;
}

/** Returns every file under a folder with its text. */
function filesUnder(root: string): [string, string][] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
    .map((path) => [path, readFileSync(path, "latin1")]);
}

describe("the index", () => {
  test("[STE1] a long backlog is indexed by the thread, and results report it meanwhile", async () => {
    const root = folder();
    const store = await createStore({ dir: root, durability: "os" });
    await create(store, scope, "s");
    const words = Array.from({ length: 400 }, (_, index) => `word${index}`).join(" ");
    const items = Array.from({ length: 1000 }, () => ({ draft: said(words) }));
    for (let batch = 0; batch < 3; batch++) await store.sessions.append(scope, "s", items);
    await append(store, scope, "s", "needle");
    let turns = 0;
    let isAnswered = false;
    const turning = (async () => {
      for (; !isAnswered; turns += 1) await nextTurn();
    })();
    const first = await store.search.search(scope, { text: "needle" });
    isAnswered = true;
    await turning;
    // Nine megabytes of text take seconds to process. Nothing waits for this, and the event loop keeps running.
    expect(first.behind).toBe(1);
    expect(first.hits).toEqual([]);
    expect(turns).toBeGreaterThan(10);
    await store.upkeep.bringUpIndex();
    expect((await store.search.search(scope, { text: "needle" })).hits).toHaveLength(1);
    expect((await store.sessions.list(scope, {})).sessions[0]?.digest.entries).toBe(3001);
    await store.close();
  });

  test("[STE1] two processes on one folder see each other's writes", async () => {
    const root = folder();
    const one = await createStore({ dir: root });
    const two = await createStore({ dir: root });
    await create(one, scope, "s");
    await append(one, scope, "s", "apple");
    expect((await two.sessions.list(scope, {})).sessions.map(({ digest }) => digest.entries)).toEqual([1]);
    await append(two, scope, "s", "banana");
    expect((await one.search.search(scope, { text: "banana" })).hits).toHaveLength(1);
    expect((await one.sessions.list(scope, {})).sessions.map(({ digest }) => digest.entries)).toEqual([2]);
    await one.close();
    await append(two, scope, "s", "cherry");
    expect((await two.search.search(scope, { text: "cherry" })).hits).toHaveLength(1);
    await two.close();
  });

  test("[STE1] a process that never lists leaves an up-to-date index", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    await create(store, scope, "s");
    await append(store, scope, "s", "apple");
    await store.close();
    const found = await (await createStore({ dir: root })).upkeep.check({ fix: false });
    expect(found).toEqual([]);
  });
});

describe("removed content", () => {
  test("[ERZ1] after a redaction no file has the text: not the index, the listing, or an original", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    await create(store, ann, "s");
    await append(store, ann, "s", "plain words", "xyzzyplugh", "more words");
    await store.sessions.list(ann, {});
    await store.sessions.append(ann, "s", [{ id: "bare", draft: said("hush xyzzyplughsecret") }]);
    await store.upkeep.bringUpIndex();
    await store.sessions.redact(ann, "s", ["bare"]);
    expect(filesUnder(root).filter(([, text]) => text.includes("xyzzyplughsecret"))).toEqual([]);
    await store.close();
    expect(filesUnder(root).filter(([, text]) => text.includes("xyzzyplughsecret"))).toEqual([]);
    expect(await filesUnder(root).some(([, text]) => text.includes("xyzzyplugh"))).toBe(true);
  });

  test("[FS24] after a user was removed no file has their text or name", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    const zoe = { userId: "zoe-of-nowhere", agentId: "main" };
    for (const scope of [zoe, ann]) {
      await create(store, scope, "s", { label: `label of ${scope.userId}` });
      await append(store, scope, "s", `words of ${scope.userId}`);
    }
    await store.upkeep.bringUpIndex();
    await store.purgeUser(zoe.userId);
    await store.close();
    expect(filesUnder(root).filter(([, text]) => text.includes("zoe-of-nowhere"))).toEqual([]);
    expect(filesUnder(root).some(([, text]) => text.includes("words of ann"))).toBe(true);
  });
});

describe("a backup", () => {
  test("[BAK1] taken while another process writes, it opens and has everything acknowledged before", async () => {
    const root = folder();
    const target = join(folder(), "copy");
    const store = await createStore({ dir: root });
    await create(store, ann, "s", { label: "trip" });
    await append(store, ann, "s", "a", "b");
    await store.state.set(ann, "s", "tools", { active: ["x"] });
    const sha256 = await store.blobs.put(ann, Buffer.from("large"));
    await create(store, ann, "gone");
    await store.sessions.remove(ann, "gone");
    const script = supportProgram("appender");
    const child = spawn(process.execPath, [script, root, "s"], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    const before = await ids(store, ann, "s");
    await store.upkeep.backup(target);
    child.kill("SIGKILL");
    await once(child, "exit");
    await expect(store.upkeep.backup(target)).rejects.toThrow("not empty");
    await expect(store.upkeep.backup(join(root, "inside"))).rejects.toThrow("inside");
    await store.close();
    const copy = await createStore({ dir: target });
    const found = await ids(copy, ann, "s");
    expect(found.slice(0, before.length)).toEqual(before);
    expect((await copy.sessions.get(ann, "s"))?.meta.label).toBe("trip");
    expect((await copy.state.get(ann, "s", "tools"))?.value).toEqual({ active: ["x"] });
    expect(await copy.blobs.get(ann, sha256)).not.toBeNull();
    expect((await copy.sessions.restore(ann, "gone")).sessionId).toBe("gone");
    await append(copy, ann, "s", "after");
    await copy.close();
  });
});

describe("a check", () => {
  test("[FS26] finds problems and changes nothing; a fix repairs them", async () => {
    const root = folder();
    const sessions = join(root, "agents", "main", "sessions");
    const store = await createStore({ dir: root });
    await create(store, scope, "s");
    await append(store, scope, "s", "a");
    await create(store, scope, "lost");
    expect(await store.upkeep.check({ fix: false })).toMatchObject([{ area: "index" }]);
    await store.close();
    // A dead process's lock, another program's file, an unfinished file, a damaged line, and a missing log.
    writeFileSync(join(sessions, "s.jsonl.lock"), "");
    writeFileSync(join(sessions, ".s.jsonl.x.tmp"), "half");
    utimesSync(join(sessions, ".s.jsonl.x.tmp"), 1, 1);
    appendFileSync(join(sessions, "s.log.jsonl"), "{torn\n");
    writeFileSync(
      join(sessions, "pi.jsonl"),
      `${JSON.stringify({ type: "session", version: 3, id: "pi" })}\n`,
    );
    for (const name of ["lost.jsonl", "lost.log.jsonl"]) rmSync(join(sessions, name));
    const again = await createStore({ dir: root });
    const areas = (await again.upkeep.check({ fix: false })).map(
      ({ area, severity }) => `${area} ${severity}`,
    );
    expect(areas.toSorted()).toEqual([
      "index warning",
      "leftovers note",
      "locks note",
      "logs error",
      "logs note",
      "logs warning",
    ]);
    expect(existsSync(join(sessions, "s.jsonl.lock"))).toBe(true);
    const fixed = await again.upkeep.check({ fix: true });
    expect(fixed.filter(({ fixable }) => fixable).every(({ fixed: done }) => done)).toBe(true);
    const left = await again.upkeep.check({ fix: false });
    expect(left.filter(({ fixable }) => fixable)).toEqual([]);
    // The remaining findings: the missing log, the damaged line, and the adopted file.
    expect(left.map(({ area, severity }) => `${area} ${severity}`).toSorted()).toEqual([
      "logs error",
      "logs note",
      "logs warning",
    ]);
    expect((await again.sessions.get(scope, "pi"))?.sessionId).toBe("pi");
    expect(await ids(again, scope, "s")).toEqual(["a"]);
    await again.close();
  });

  test("[FS27] a blob is swept once nothing refers to it and a day has passed", async () => {
    const root = folder();
    let time = Date.now();
    const store = await createStore({ dir: root, clock: { now: () => time } });
    await create(store, scope, "s");
    const put = (text: string) => store.blobs.put(scope, Buffer.from(text));
    const [used, trashed, loose] = [await put("used"), await put("trashed"), await put("loose")];
    const referring = (sha256: string) => {
      const blob = { sha256, bytes: 4, mimeType: "text/plain", was: "text" };
      const content = [{ type: "text" as const, text: "(in a blob)", skein: { blob } }];
      return { draft: { type: "message" as const, message: { role: "user" as const, content } } };
    };
    await store.sessions.append(scope, "s", [referring(used)]);
    await create(store, scope, "t");
    await store.sessions.append(scope, "t", [referring(trashed)]);
    await store.sessions.remove(scope, "t");
    expect(await store.upkeep.sweepBlobs()).toEqual({ files: 0, bytes: 0 });
    time += 25 * 60 * 60 * 1000;
    expect(await store.upkeep.sweepBlobs()).toEqual({ files: 1, bytes: 5 });
    expect(await store.blobs.get(scope, loose)).toBeNull();
    expect(await store.blobs.get(scope, used)).not.toBeNull();
    expect(await store.blobs.get(scope, trashed)).not.toBeNull();
    await store.sessions.purge(scope, "t");
    expect(await store.blobs.get(scope, trashed)).toBeNull();
    expect((await store.upkeep.sweepBlobs()).files).toBe(0);
    await store.close();
  });

  test.skipIf(!existsSync("/proc/self/fd"))(
    "hundreds of sessions in a row keep few files open, and all stay correct",
    async () => {
      const store = await createStore({ dir: folder(), durability: "os" });
      const handles = () => readdirSync("/proc/self/fd").length;
      const before = handles();
      const names = Array.from({ length: 600 }, (_, index) => `s${index}`);
      for (const name of names) {
        await create(store, scope, name);
        await append(store, scope, name, `in ${name}`);
      }
      expect(handles() - before).toBeLessThan(350);
      await Promise.all(names.map((name) => append(store, scope, name, `again ${name}`)));
      for (const name of names.slice(0, 50)) expect(await ids(store, scope, name)).toHaveLength(2);
      await store.close();
    },
  );

  test("of two stores that set state from the same version, one is refused", async () => {
    const root = folder();
    const stores = [await createStore({ dir: root }), await createStore({ dir: root })];
    await create(stores[0] as never, scope, "s");
    const set = (index: number) => stores[index % 2]?.state.set(scope, "s", "k", index, { ifVersion: null });
    const results = await Promise.allSettled(Array.from({ length: 10 }, (_, index) => set(index)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const store of stores) await store.close();
  });

  test("[OST16] a namespace decides the folders, and a session stays where it was created", async () => {
    const root = folder();
    const namespace = ({ userId }: { userId?: string }) =>
      userId === undefined ? [] : ["tenants", "ACME", userId];
    const store = await createStore({ dir: root, namespace });
    await create(store, ann, "s");
    await append(store, ann, "s", "a");
    const home = join(root, "tenants", "%41%43%4d%45", "ann", "agents", "main", "sessions");
    expect(existsSync(join(home, "s.log.jsonl"))).toBe(true);
    await store.close();
    // If the rule later changes or is removed, existing sessions are still found in their old folders. Without the
    // databases, they are found through their logs.
    for (const name of readdirSync(root).filter((each) => each.includes(".db"))) rmSync(join(root, name));
    const again = await createStore({ dir: root });
    expect(await ids(again, ann, "s")).toEqual(["a"]);
    await append(again, ann, "s", "b");
    await create(again, ann, "t");
    expect(existsSync(join(root, "users", "ann", "agents", "main", "sessions", "t.log.jsonl"))).toBe(true);
    await again.close();
    const shared = await createStore({ dir: folder(), namespace: () => ["team"] });
    await create(shared, ann, "s");
    await expect(create(shared, { userId: "bob", agentId: "main" }, "t")).rejects.toMatchObject({
      code: "conflict",
    });
    await expect(shared.blobs.put({ userId: "bob", agentId: "main" }, Buffer.from("b"))).rejects.toThrow(
      "two users",
    );
    await shared.close();
    const bad = await createStore({ dir: folder(), namespace: () => ["agents"] });
    await expect(create(bad, ann, "s")).rejects.toThrow("namespace");
    await bad.close();
  });

  test("[OST16] one user's files contain nothing of another user", async () => {
    const root = folder();
    const store = await createStore({ dir: root });
    for (const userId of ["ann", "bob", "Ann"]) {
      await create(store, { userId, agentId: "main" }, "s");
      await append(store, { userId, agentId: "main" }, "s", `secret of ${userId}!`);
    }
    expect(store.upkeep.users().toSorted()).toEqual(["Ann", "ann", "bob"]);
    const { log = "" } = store.upkeep.files({ userId: "bob" }, "s") ?? {};
    expect(readFileSync(log, "utf8")).toContain("secret of bob!");
    expect(store.upkeep.files({ userId: "eve" }, "s")).toBeNull();
    await store.close();
    const logs = filesUnder(root).filter(([path]) => path.endsWith(".jsonl"));
    for (const userId of ["ann", "bob", "Ann"]) {
      const places = logs.filter(([, text]) => text.includes(`secret of ${userId}!`)).map(([path]) => path);
      expect(new Set(places.map((path) => path.slice(root.length).split("/")[2])).size).toBe(1);
    }
  });
});
