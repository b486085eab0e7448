import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import type { Disk } from "./disk.ts";
import { realDisk } from "./disk.ts";
import { openFilesStore } from "./store.ts";

const scope = { agentId: "main" };

test("a check reports files that cannot be read and checks the others", async () => {
  using folder = temporaryFolder("skein-check-");
  const root = folder.path;
  const sessions = join(root, "agents/main/sessions");
  const protectedFiles = new Set<string>();
  const openers = ["openExisting", "openToRead"] as const;
  const guarded = openers.map((name): [string, Disk["openToRead"]] => [
    name,
    (path) => {
      if (!protectedFiles.has(path)) return realDisk[name](path);
      throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
    },
  ]);
  const store = await openFilesStore({ root, disk: { ...realDisk, ...Object.fromEntries(guarded) } });
  for (const sessionId of ["a", "b"])
    await store.sessions.create(scope, { key: `agent:main:session:${sessionId}`, sessionId, cwd: "/" });
  const foreign = join(sessions, "foreign.jsonl");
  realDisk.create(foreign).close();
  for (const path of [join(sessions, "a.log.jsonl"), foreign]) protectedFiles.add(path);
  const found = (await store.upkeep.check({ fix: true })).filter(({ what }) => what.includes("EACCES"));
  expect(found.map(({ file }) => file).toSorted()).toEqual([join(sessions, "a.log.jsonl"), foreign]);
  expect(found.some(({ fixed }) => fixed)).toBe(false);
  await store.close();
});
