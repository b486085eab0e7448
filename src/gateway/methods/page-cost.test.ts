import { afterEach, expect, test, vi } from "vitest";
import type { ReadingFolder } from "../../../test/support/reading-folder.ts";
import { readingFolder } from "../../../test/support/reading-folder.ts";
import { Database } from "../../store/files/database.ts";

let folder: ReadingFolder | null = null;
afterEach(async () => {
  vi.restoreAllMocks();
  await folder?.close();
  folder = null;
});

test("listing many sessions takes no more database queries than listing two", async () => {
  folder = await readingFolder();
  const { store, admin } = folder;
  for (let number = 0; number < 40; number++) {
    const meta = number === 39 ? { spawnedBy: "agent:main:session:s0" } : {};
    const key = `agent:main:session:s${number}`;
    await store.sessions.create({}, { key, sessionId: `s${number}`, cwd: "/w", meta });
  }
  await store.upkeep.bringUpIndex();
  const asked = vi.spyOn(Database.prototype, "sql");
  const questions = async (limit: number) => {
    asked.mockClear();
    const { sessions } = await admin("sessions.list", { limit, includeDetails: true });
    return { sessions, asked: asked.mock.calls.length };
  };
  // Once the index is up to date, it is not queried again.
  await questions(1);
  const [few, many] = [await questions(2), await questions(40)];
  expect([few.sessions.length, many.sessions.length]).toEqual([2, 40]);
  expect(many.asked).toBe(few.asked);
  const { childSessions, status, transcriptPath } =
    many.sessions.find(({ sessionId }) => sessionId === "s0") ?? {};
  expect([childSessions, status]).toEqual([["agent:main:session:s39"], "idle"]);
  expect(transcriptPath).toBe(store.upkeep.files({}, "s0")?.working);
});
