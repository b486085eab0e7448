import { afterEach, describe, expect, test } from "vitest";
import { createStore } from "../../src/entry-store.ts";
import type { ConfigInput } from "../../src/index.ts";
import { emptyStore } from "../support/empty-store.ts";
import { call, gate } from "../support/family.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import { closeAll, newFolder, withScript } from "../support/skein.ts";
import { said } from "../support/store-calls.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
  await closeAll();
});

const scope = { agentId: "main" };
const day = 86_400_000;

interface AgedSession {
  readonly sessionId: string;
  readonly key?: string;
  readonly days: number;
  readonly bytes?: number;
  readonly isTrashed?: boolean;
}

/** A gateway on a folder whose sessions were last used this many days ago. */
async function gatewayWith(
  sessions: readonly AgedSession[],
  maintenance: NonNullable<NonNullable<ConfigInput["session"]>["maintenance"]>,
) {
  const dir = newFolder();
  const today = Date.now();
  let time = 0;
  const clock = { now: () => time };
  const { backend } = await emptyStore({ dir });
  const store = backend?.openStore({ clock }) ?? (await createStore({ dir, clock }));
  for (const {
    sessionId,
    key = `agent:main:session:${sessionId}`,
    days,
    bytes = 10,
    isTrashed,
  } of sessions) {
    time = today - days * day;
    await store.sessions.create(scope, { key, sessionId, cwd: "/" });
    await store.sessions.append(scope, sessionId, [{ draft: said("x".repeat(bytes)) }]);
    if (isTrashed) await store.sessions.remove(scope, sessionId);
  }
  await store.close();
  const { tool, open } = gate();
  const config = { session: { maintenance: { mode: "enforce" as const, ...maintenance } } };
  const opened = await withScript([call("gate"), { text: "Done." }], { tools: [tool] }, { dir, config });
  const gateway = await mountOverHttp(opened.skein, dir);
  closing.push(() => gateway.close());
  const maintain = async () =>
    (await gateway.call("maintenance.run", {})).done.map(({ action, sessionId }) => `${action} ${sessionId}`);
  const listed = async () =>
    (await opened.skein.store.sessions.list(scope, {})).sessions.map(({ sessionId }) => sessionId).toSorted();
  const trashed = async () =>
    (await opened.skein.store.sessions.trashed(scope)).map(({ sessionId }) => sessionId).toSorted();
  return { ...opened, open, maintain, listed, trashed };
}

describe("maintenance", () => {
  test("[MNT1] moves a session without activity for pruneAfter to the trash", async () => {
    const sessions = [
      { sessionId: "old", days: 40 },
      { sessionId: "young", days: 20 },
    ];
    const { maintain, listed, trashed } = await gatewayWith(sessions, { pruneAfter: "30d" });
    expect(await maintain()).toEqual(["trash old"]);
    expect([await listed(), await trashed()]).toEqual([["young"], ["old"]]);
    expect(await maintain()).toEqual([]);
  });

  test("[MNT2] touches neither a main session nor a session with an open run", async () => {
    const sessions = [
      { sessionId: "main-session", key: "agent:main:main", days: 400 },
      { sessionId: "busy", days: 400 },
      { sessionId: "other", days: 400 },
    ];
    const rules = { pruneAfter: "30d", maxDiskBytes: "1KB" };
    const { skein, until, open, maintain, listed, trashed } = await gatewayWith(sessions, rules);
    const turn = skein.session({ sessionId: "busy" }).send("Wait");
    await until("run.tool");
    expect(await maintain()).toEqual(["trash other"]);
    expect([await listed(), await trashed()]).toEqual([["busy", "main-session"], ["other"]]);
    open();
    await turn.result;
  });

  test("[MNT4] above maxDiskBytes, purges the trash before it removes a session", async () => {
    const sessions = [
      { sessionId: "oldest", days: 9, bytes: 20_000 },
      { sessionId: "removed", days: 5, bytes: 50_000, isTrashed: true },
      { sessionId: "removed-later", days: 4, bytes: 50_000, isTrashed: true },
      { sessionId: "latest", days: 1, bytes: 20_000 },
    ];
    const { maintain, listed, trashed } = await gatewayWith(sessions, {
      maxDiskBytes: "100KB",
      highWater: 1,
    });
    expect(await maintain()).toEqual(["purge removed"]);
    expect([await listed(), await trashed()]).toEqual([["latest", "oldest"], ["removed-later"]]);
  });

  test("[MNT4] removes a session if the trash is not enough", async () => {
    const sessions = [
      { sessionId: "oldest", days: 9, bytes: 40_000 },
      { sessionId: "removed", days: 5, bytes: 40_000, isTrashed: true },
      { sessionId: "latest", days: 1, bytes: 40_000 },
    ];
    const { maintain, listed } = await gatewayWith(sessions, { maxDiskBytes: "60KB", highWater: 1 });
    expect(await maintain()).toEqual(["purge removed", "trash oldest"]);
    expect(await listed()).toEqual(["latest"]);
  });
});
