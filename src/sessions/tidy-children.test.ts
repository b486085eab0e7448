import { existsSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fakeApp } from "../../test/support/fake-app.ts";
import { fileBoundary } from "../../test/support/file-boundary.ts";
import { spawnGround, wish } from "../../test/support/spawning.ts";
import type { Child } from "../runs/contract.ts";
import { spawnChild } from "./spawn.ts";
import { ChildKeeper } from "./tidy-children.ts";

let folder = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "child-keeper-")));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function spawned(mountPath?: string) {
  const ground = spawnGround(folder);
  const attachments = [{ name: "a", content: "x" }];
  const more = mountPath === undefined ? {} : { mountPath };
  for (const callId of ["one", "two"]) {
    const path = mountPath === undefined ? {} : { mountPath: `${more.mountPath}-${callId}` };
    await spawnChild(ground.deps, await ground.caller({}, { callId }), wish({ attachments, ...path }));
  }
  const children = ground.books.requests.map(({ child, runId = "" }) => {
    const run = ground.books.runs.get(runId);
    return { ...child, run, tidiedAt: null } as unknown as Child;
  });
  return { ...ground, children };
}

describe("expired children", () => {
  test("[FAM29] are removed or archived with their attachments, and then recorded; repeating changes nothing", async () => {
    const { deps, books, store, children } = await spawned();
    const [first, second] = children as [Child, Child];
    books.due = [
      { child: first, act: "remove" },
      { child: second, act: "archive" },
    ];
    const keeper = new ChildKeeper(fakeApp(deps));
    await keeper.tidy();
    await keeper.tidy();
    expect((await store.sessions.trashed({})).map(({ sessionId }) => sessionId)).toEqual([
      first.run.session.sessionId,
    ]);
    const kept = await store.sessions.get({}, second.run.session.sessionId);
    expect(kept?.meta.archived).toBe(true);
    for (const { attachments = "" } of children) expect(existsSync(attachments)).toBe(false);
    expect(new Set(books.tidied)).toEqual(new Set(children.map(({ run }) => run.runId)));
  });

  test("[FAM29] have their own folder, by its real path", async () => {
    const { deps, books, children } = await spawned();
    symlinkSync(join(folder, "store"), join(folder, "link"));
    const [{ attachments = "" }] = children as [Child];
    writeFileSync(join(attachments, "made-by-the-child"), "x");
    books.due = children.map((child) => ({ child, act: "remove" as const }));
    const files = fileBoundary({
      attachments: (_, agentId, sessionId) => join(folder, "link", agentId, "attachments", sessionId),
    });
    await new ChildKeeper(fakeApp({ ...deps, files })).tidy();
    expect(existsSync(attachments)).toBe(false);
  });

  test("[FAM29] in the working directory leave foreign files", async () => {
    const { deps, books, children } = await spawned("in");
    books.due = children.map((child) => ({ child, act: "remove" as const }));
    await new ChildKeeper(fakeApp(deps)).tidy();
    expect(existsSync(join(folder, "in-one"))).toBe(false);
    expect(existsSync(folder)).toBe(true);
  });

  test("[FAM29] one that fails is reported and stays due, and the others are processed", async () => {
    const { deps, books, store, reported, children } = await spawned();
    const [first, second] = children as [Child, Child];
    books.due = children.map((child) => ({ child, act: "remove" as const }));
    const sessions = Object.create(store.sessions, {
      remove: {
        value: async (scope: object, sessionId: string) => {
          if (sessionId === first.run.session.sessionId) throw new Error("disk");
          return store.sessions.remove(scope, sessionId);
        },
      },
    });
    await new ChildKeeper(fakeApp({ ...deps, store: { ...store, sessions } })).tidy();
    expect(reported).toMatchObject([{ message: "disk" }]);
    expect(books.tidied).toEqual([second.run.runId]);
  });
});
