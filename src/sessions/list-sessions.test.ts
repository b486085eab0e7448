import { expect, test } from "vitest";
import type { SessionWork } from "../runs/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { listPayload } from "./list.ts";

test("a list includes the activity of runs if it is given their store", async () => {
  const { sessions } = createMemoryStore();
  await sessions.create({}, { key: "agent:main:main", cwd: "/w" });
  const done = { startedAt: 5, endedAt: 8, runId: null, queued: 0 };
  const work: SessionWork = { ...done, status: "aborted", approvals: 0 };
  const runs = { work: async (uids: readonly string[]) => new Map(uids.map((uid) => [uid, work])) };
  const page = { ...(await sessions.list({}, {})), total: 1 };
  const payload = await listPayload(sessions, page, { runs });
  expect(payload.sessions).toMatchObject([{ status: "aborted", startedAt: 5, endedAt: 8, runtimeMs: 3 }]);
  const without = await listPayload(sessions, page);
  expect(without.sessions[0]).not.toHaveProperty("status");
});
