import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { valueScript } from "../../src/core/script.ts";
import type { FilesStore } from "../../src/entry-store.ts";
import { createStore } from "../../src/entry-store.ts";
import type { DiskOperation, TemporaryFolder } from "../../src/entry-testing.ts";
import { SimulatedDisk, temporaryFolder } from "../../src/entry-testing.ts";
import type { EntryDraft, SkeinError } from "../../src/index.ts";
import { SessionTree } from "../../src/index.ts";
import { IndexFeed } from "../../src/store/files/index-feed.ts";
import { SessionFile } from "../../src/store/files/session-file.ts";
import { Attendance } from "../../src/store/work.ts";
import { append, create, ids, listed, refused, said } from "../support/store-calls.ts";

const userId = "zoe-of-nowhere";
const zoe = { userId, agentId: "main" };
const init = { key: "agent:main:session:f", sessionId: "f", cwd: "/w" };

let folder: TemporaryFolder;
let store: FilesStore;
/** Stands for another process that uses the same folder. */
let other: FilesStore;

beforeEach(async () => {
  folder = temporaryFolder("skein-races-");
  store = await createStore({ dir: folder.path });
  other = await createStore({ dir: folder.path });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await closeBoth();
  folder.remove();
});

async function closeBoth(): Promise<void> {
  await Promise.allSettled([store.close(), other.close()]);
}

/** Returns the paths of everything in a folder whose name or content contains the text. */
function holding(text: string): string[] {
  return readdirSync(folder.path, { recursive: true, withFileTypes: true })
    .filter((each) => {
      const path = join(each.parentPath, each.name);
      return path.includes(text) || (each.isFile() && readFileSync(path, "latin1").includes(text));
    })
    .map((each) => join(each.parentPath, each.name));
}

function referringTo(sha256: string): EntryDraft {
  const blob = { sha256, bytes: 9, mimeType: "text/plain", was: "text" };
  const content = [{ type: "text" as const, text: "(in a blob)", skein: { blob } }];
  return { type: "message", message: { role: "user", content } };
}

/** Runs an action at one point of every fork. */
const points: Record<string, (act: () => Promise<unknown>) => void> = {
  "before it is claimed": (act) => {
    const { findBranch } = SessionFile.prototype;
    vi.spyOn(SessionFile.prototype, "findBranch").mockImplementation(async function (this: SessionFile, id) {
      const found = await findBranch.call(this, id);
      await act();
      return found;
    });
  },
  "before its files are written": (act) => {
    const make = SessionFile.create.bind(SessionFile);
    vi.spyOn(SessionFile, "create").mockImplementation(async (...args) => {
      await act();
      return make(...args);
    });
  },
  "after its files are written": (act) => {
    const make = SessionFile.create.bind(SessionFile);
    vi.spyOn(SessionFile, "create").mockImplementation(async (...args) => {
      const made = await make(...args);
      await act();
      return made;
    });
  },
};

describe("a user who is purged while a session is copied", () => {
  test.each(Object.keys(points))("[ST29] keeps nothing if a fork is interrupted %s", async (point) => {
    await create(store, zoe, "s");
    await append(store, zoe, "s", "topsecret");
    points[point]?.(() => other.purgeUser(userId));
    await refused("not_found", () => store.sessions.fork(zoe, "s", "topsecret", init));
    expect(await listed(store, zoe)).toEqual([]);
    expect(await store.sessions.trashed(zoe)).toEqual([]);
    await closeBoth();
    expect(holding("topsecret")).toEqual([]);
    expect(holding(userId)).toEqual([]);
  });

  test.each(Object.keys(points).slice(1))(
    "[ST29] keeps nothing if an import is interrupted %s",
    async (point) => {
      const tree = SessionTree.create({ cwd: "/", id: "theirs" }, { clock: { now: () => 0 } });
      tree.append(said("topsecret"), { id: "x" });
      points[point]?.(() => other.purgeUser(userId));
      await refused("not_found", () => store.sessions.adopt(zoe, init, tree));
      expect(await listed(store, zoe)).toEqual([]);
      await closeBoth();
      expect(holding("topsecret")).toEqual([]);
    },
  );
});

describe("a session that is restored and purged at the same time", () => {
  const scope = { agentId: "main" };
  let disk: SimulatedDisk;

  beforeEach(async () => {
    await closeBoth();
    disk = new SimulatedDisk();
    const open = () => createStore({ dir: "/store", databases: join(folder.path, "sim"), disk });
    store = await open();
    other = await open();
    await create(store, scope, "s");
    await append(store, scope, "s", "a");
    await store.sessions.remove(scope, "s");
  });

  /** Starts an action right before the disk executes an operation. */
  function startAt<T>(operation: DiskOperation, part: string, act: () => Promise<T>): () => Promise<T> {
    let started: Promise<T> | null = null;
    disk.fault = (each, path) => {
      if (each === operation && path.includes(part)) started ??= act();
      return null;
    };
    return () => started ?? Promise.reject(new Error("it was not started"));
  }

  test("[ST15] exists if the restore comes first", async () => {
    const purged = startAt("rename", "/trash/", () => other.sessions.purge(scope, "s"));
    await store.sessions.restore(scope, "s");
    expect(await purged()).toBe(false);
    expect(await ids(store, scope, "s")).toEqual(["a"]);
    expect(await listed(other, scope)).toEqual(["s"]);
  });

  test("[ST28] is gone if the purge comes first", async () => {
    const restored = startAt("unlink", "/trash/", () =>
      other.sessions.restore(scope, "s").catch((error: SkeinError) => error.code),
    );
    expect(await store.sessions.purge(scope, "s")).toBe(true);
    expect(await restored()).toBe("not_found");
    expect(await listed(store, scope)).toEqual([]);
  });

  test("[FS24] cannot be restored after an interrupted purge has deleted its log", async () => {
    disk.fault = (operation, path) =>
      operation === "syncFolder" && path === "/store/trash" ? { error: "EIO" } : null;
    await store.sessions.purge(scope, "s").catch(() => undefined);
    disk.fault = () => null;
    await refused("unreadable_file", () => store.sessions.restore(scope, "s"));
    expect(await store.sessions.trashed(scope)).toMatchObject([{ sessionId: "s" }]);
    expect(await store.sessions.purge(scope, "s")).toBe(true);
    await create(store, scope, "s");
    expect(await ids(store, scope, "s")).toEqual([]);
  });
});

describe("a purge keeps a blob", () => {
  const scope = { agentId: "main" };
  const bytes = Buffer.from("an image");
  let sha256 = "";

  /** A session in the trash and a live one. The one in the trash refers to a blob. */
  beforeEach(async () => {
    sha256 = await store.blobs.put(scope, bytes);
    for (const sessionId of ["s", "t"]) await create(store, scope, sessionId);
    await store.sessions.append(scope, "s", [{ id: "e", draft: referringTo(sha256) }]);
    await store.sessions.remove(scope, "s");
  });

  test("that is put again during the purge", async () => {
    const { indexAll } = IndexFeed.prototype;
    vi.spyOn(IndexFeed.prototype, "indexAll").mockImplementation(async function (this: IndexFeed) {
      const failed = await indexAll.call(this);
      await other.blobs.put(scope, bytes);
      return failed;
    });
    expect(await store.sessions.purge(scope, "s")).toBe(true);
    await other.sessions.append(scope, "t", [{ id: "e", draft: referringTo(sha256) }]);
    expect(await store.blobs.get(scope, sha256)).toEqual(new Uint8Array(bytes));
  });

  test("that accepted input refers to since the purge began", async () => {
    let isAccepted = false;
    const { attendant } = new Attendance();
    store.work.attend({ ...attendant, isBlobInUse: () => valueScript(isAccepted) });
    vi.spyOn(IndexFeed.prototype, "indexAll").mockImplementation(async () => {
      isAccepted = true;
      return 0;
    });
    expect(await store.sessions.purge(scope, "s")).toBe(true);
    expect(await store.blobs.get(scope, sha256)).not.toBeNull();
  });
});
