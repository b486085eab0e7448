import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createStore } from "../../src/entry-store.ts";
import { run } from "../support/cli.ts";
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
const keys = { lost: "agent:main:session:lost", kept: "agent:main:session:kept", home: "agent:main:main" };

/** A folder with old sessions. The log of one of them has been deleted. */
async function folderWithout(lost: keyof typeof keys): Promise<string> {
  const dir = newFolder();
  const store = await createStore({ dir, clock: { now: () => Date.now() - 40 * day } });
  for (const [sessionId, key] of Object.entries(keys)) {
    await store.sessions.create(scope, { key, sessionId, cwd: "/" });
    await store.sessions.append(scope, sessionId, [{ draft: said("Hello") }]);
  }
  await store.sessions.list(scope, {});
  await store.close();
  const sessions = join(dir, "agents/main/sessions");
  for (const name of [`${lost}.jsonl`, `${lost}.log.jsonl`]) rmSync(join(sessions, name));
  return dir;
}

async function cli(dir: string, ...args: readonly string[]) {
  const { exit, out, err } = await run([...args, "--dir", dir], { cwd: dir });
  return { exit, text: `${out}${err}` };
}

describe("a session whose log is missing", () => {
  test("can be removed and deleted permanently", async () => {
    const dir = await folderWithout("lost");
    expect(await cli(dir, "sessions", "rm", "lost")).toMatchObject({ exit: 0 });
    expect((await cli(dir, "sessions", "ls")).text).not.toContain("lost");
    expect(await cli(dir, "sessions", "rm", "lost", "--purge", "--yes")).toMatchObject({ exit: 0 });
    const store = await createStore({ dir });
    expect(await store.sessions.trashed(scope)).toEqual([]);
    expect(await store.sessions.create(scope, { key: keys.lost, cwd: "/" })).toMatchObject({
      key: keys.lost,
    });
    await store.close();
  });

  test("still cannot be read", async () => {
    const dir = await folderWithout("lost");
    const { exit, text } = await cli(dir, "sessions", "show", "lost");
    expect(exit).not.toBe(0);
    expect(text).toContain("it is missing");
  });

  test("can be reset if it is the main session", async () => {
    const dir = await folderWithout("home");
    const store = await createStore({ dir });
    const { old, fresh } = await store.sessions.reset(scope, "home");
    expect([old.key, fresh.key]).toEqual(["agent:main:reset:home", keys.home]);
    await store.sessions.append(scope, fresh.sessionId, [{ draft: said("Again") }]);
    expect(await store.sessions.remove(scope, "home")).toBe(true);
    await store.close();
  });

  test("does not keep maintenance from the other sessions", async () => {
    const dir = await folderWithout("lost");
    const maintenance = { mode: "enforce", pruneAfter: "30d" } as const;
    const { skein } = await withScript([], {}, { dir, config: { session: { maintenance } } });
    const gateway = await mountOverHttp(skein, dir);
    closing.push(() => gateway.close());
    const { done } = await gateway.call("maintenance.run", {});
    expect(done.map(({ sessionId }) => sessionId).toSorted()).toEqual(["kept", "lost"]);
    const trashed = await skein.store.sessions.trashed(scope);
    expect(trashed.map(({ sessionId }) => sessionId).toSorted()).toEqual(["kept", "lost"]);
  });
});
