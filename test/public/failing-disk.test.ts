import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FilesStore } from "../../src/entry-store.ts";
import { SimStore } from "../support/sim-store.ts";
import { append, create, ids, listed, refused } from "../support/store-calls.ts";

let sim: SimStore;
let store: FilesStore;

const ann = { userId: "ann", agentId: "main" };
const sessions = "/store/users/ann/agents/main/sessions";

/** A store with one session that has one entry. */
beforeEach(async () => {
  sim = new SimStore();
  store = await sim.open();
  await create(store, ann, "trip");
  await append(store, ann, "trip", "first");
});
afterEach(() => sim.dispose());

/** Makes this operation fail as on a full disk until the returned function is called. */
function fill(operation: string, place: string): () => void {
  sim.disk.fault = (each, path) => (each === operation && path.includes(place) ? { error: "ENOSPC" } : null);
  return () => {
    sim.disk.fault = () => null;
  };
}

const trashed = async () => (await store.sessions.trashed(ann)).map(({ sessionId }) => sessionId);

/** Makes one file unreadable. */
function forbidReading(name: string): void {
  const { disk } = sim;
  const openers = { openExisting: disk.openExisting.bind(disk), openToRead: disk.openToRead.bind(disk) };
  for (const [opener, open] of Object.entries(openers)) {
    Object.assign(disk, {
      [opener]: (path: string) => {
        if (path === `${sessions}/${name}`)
          throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
        return open(path);
      },
    });
  }
}

describe("a removal whose files cannot be moved to the trash", () => {
  test("is done, and the restored session can be written", async () => {
    const free = fill("makeFolder", "/trash/");
    expect(await store.sessions.remove(ann, "trip")).toBe(true);
    expect([await store.sessions.get(ann, "trip"), await trashed()]).toEqual([null, ["trip"]]);
    free();
    await store.sessions.restore(ann, "trip");
    await append(store, ann, "trip", "second");
    expect(await ids(store, ann, "trip")).toEqual(["first", "second"]);
    expect(await store.sessions.remove(ann, "trip")).toBe(true);
  });

  test("is completed by the next start", async () => {
    const free = fill("makeFolder", "/trash/");
    expect(await store.sessions.remove(ann, "trip")).toBe(true);
    free();
    expect(sim.disk.list(sessions)).toContain("trip.log.jsonl");
    await store.close();
    store = await sim.open();
    expect(sim.disk.list(sessions)).not.toContain("trip.log.jsonl");
    await store.sessions.restore(ann, "trip");
    expect(await ids(store, ann, "trip")).toEqual(["first"]);
  });
});

describe("a restore", () => {
  test.each(["rename", "syncFolder"])(
    "that fails at %s leaves the session in the trash",
    async (operation) => {
      await store.sessions.remove(ann, "trip");
      const free = fill(operation, "/");
      await refused("write_failed", () => store.sessions.restore(ann, "trip"), "still in the trash");
      expect([await store.sessions.get(ann, "trip"), await trashed()]).toEqual([null, ["trip"]]);
      free();
      await store.sessions.restore(ann, "trip");
      expect(await ids(store, ann, "trip")).toEqual(["first"]);
    },
  );

  test("of a session whose log is missing leaves it in the trash", async () => {
    const { uid } = await create(store, ann, "lost");
    await store.sessions.remove(ann, "lost");
    for (const name of sim.disk.list(`/store/trash/${uid}`)) sim.disk.unlink(`/store/trash/${uid}/${name}`);
    await refused("unreadable_file", () => store.sessions.restore(ann, "lost"), "it is missing");
    expect([await store.sessions.get(ann, "lost"), await trashed()]).toEqual([null, ["lost"]]);
  });
});

test("a session whose creation could not be recorded is removed with its content", async () => {
  const database = new DatabaseSync(join(sim.databases, "work.db"));
  database.exec("UPDATE sessions SET state = 'pending'");
  database.close();
  expect(await store.sessions.remove(ann, "trip")).toBe(true);
  expect([await store.sessions.get(ann, "trip"), await trashed()]).toEqual([null, ["trip"]]);
  await store.sessions.restore(ann, "trip");
  expect(await ids(store, ann, "trip")).toEqual(["first"]);
});

test("an unreadable log is reported as such", async () => {
  await store.close();
  store = await sim.open();
  forbidReading("trip.log.jsonl");
  await refused("unreadable_file", () => store.sessions.get(ann, "trip"), "EACCES");
  await refused("unreadable_file", () => append(store, ann, "trip", "second"), "trip.log.jsonl");
});

describe("a file that cannot be read", () => {
  const line = { type: "session", version: 3, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" };

  test("is left alone when the store opens, and the other files are adopted", async () => {
    await store.close();
    for (const id of ["good", "bad"]) {
      const file = sim.disk.create(`${sessions}/${id}.jsonl`);
      file.append(Buffer.from(`${JSON.stringify({ ...line, id })}\n`));
    }
    rmSync(join(sim.databases, "work.db"));
    forbidReading("bad.jsonl");
    store = await sim.open();
    expect((await listed(store, ann)).toSorted()).toEqual(["good", "trip"]);
    expect(await store.sessions.get(ann, "bad")).toBeNull();
  });

  test("is left alone when the sessions are rebuilt from their logs", async () => {
    await create(store, ann, "other");
    await store.close();
    for (const name of ["work.db", "index.db"]) rmSync(join(sim.databases, name));
    forbidReading("trip.log.jsonl");
    store = await sim.open();
    expect(await listed(store, ann)).toEqual(["other"]);
  });
});
