import { afterEach, describe, expect, test } from "vitest";
import type { ReadingFolder } from "../../../test/support/reading-folder.ts";
import { readingFolder } from "../../../test/support/reading-folder.ts";
import { openFolder } from "../../app/folder.ts";
import type { SessionRecord } from "../../store/contract.ts";

let folder: ReadingFolder | null = null;

afterEach(async () => {
  await folder?.close();
  folder = null;
});

const said = (text: string) => ({ type: "message", message: { role: "user", content: text } }) as const;
const cwd = "/home/ann";

/** Returns a folder with one session, and the number of rows that have been built for an admin's lists. */
async function watched() {
  let rows = 0;
  const workingSets = (sessions: readonly Pick<SessionRecord, "uid">[]) => {
    rows += sessions.length;
    return new Map(sessions.map(({ uid }) => [uid, `/${uid}.jsonl`]));
  };
  const made = await readingFolder({ workingSets });
  folder = made;
  await made.store.sessions.create({}, { key: "agent:main:session:a", sessionId: "a", cwd });
  return { ...made, rows: () => rows };
}

describe("a list that is requested again", () => {
  test("is not built again if nothing has changed, but separately for different params", async () => {
    const { admin, reader, as, rows } = await watched();
    const first = await admin("sessions.list", {});
    expect(rows()).toBe(1);
    expect(await admin("sessions.list", {})).toEqual(first);
    expect(rows()).toBe(1);
    await admin("sessions.list", { limit: 1 });
    expect(rows()).toBe(2);
    // A caller with fewer rights never receives data that was cached for another caller.
    expect((await reader("sessions.list", {})).path).toBeUndefined();
    expect((await as("ben", "read", "admin")("sessions.list", {})).count).toBe(0);
  });

  test("includes later changes of this process", async () => {
    const { admin, append, store } = await watched();
    await admin("sessions.list", {});
    await append({}, "a", said("Kyoto"));
    expect((await admin("sessions.list", {})).sessions[0]?.bytes).toBeGreaterThan(100);
    await store.sessions.patch({}, "a", { label: "trip" });
    expect((await admin("sessions.list", {})).sessions[0]?.label).toBe("trip");
    await store.sessions.remove({}, "a");
    expect((await admin("sessions.list", {})).count).toBe(0);
  });

  test("includes later changes of another process", async () => {
    const { admin, dir } = await watched();
    await admin("sessions.list", {});
    const other = await openFolder({ root: dir, durability: "os" });
    try {
      await other.sessions.create({}, { key: "agent:main:session:b", sessionId: "b", cwd });
      expect((await admin("sessions.list", {})).count).toBe(2);
      await other.sessions.patch({}, "b", { label: "far" });
      expect((await admin("sessions.list", { label: "far" })).count).toBe(1);
    } finally {
      await other.close();
    }
    expect((await admin("sessions.list", {})).sessions.map(({ label }) => label)).toContain("far");
  });
});
