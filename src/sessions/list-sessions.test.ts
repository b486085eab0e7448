import { expect, test } from "vitest";
import type { SessionWork } from "../runs/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { listPayload } from "./list.ts";

test("a list includes the activity of runs if it is given their store", async () => {
  const { sessions } = createMemoryStore();
  await sessions.create({}, { key: "agent:main:main", cwd: "/w" });
  const work: SessionWork = { status: "aborted", startedAt: 5, endedAt: 8, runId: null, queued: 0 };
  const runs = { work: async (uids: readonly string[]) => new Map(uids.map((uid) => [uid, work])) };
  const payload = await listPayload(sessions, await sessions.list({}, {}), { runs });
  expect(payload.sessions).toMatchObject([{ status: "aborted", startedAt: 5, endedAt: 8, runtimeMs: 3 }]);
  const without = await listPayload(sessions, await sessions.list({}, {}));
  expect(without.sessions[0]).not.toHaveProperty("status");
});
