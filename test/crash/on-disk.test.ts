import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { append, create } from "../../src/conformance/expect.ts";
import { userSegment } from "../../src/core/path-segment.ts";
import { openFilesStore } from "../../src/store/files/store.ts";

const root = join(mkdtempSync(join(tmpdir(), "skein-disk-")), "store");
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("what is on the disk", () => {
  test("[FS15] [FS16] modes, names and the user of a hashed folder", async () => {
    const store = await openFilesStore({ root });
    const userId = "a very long user id ".repeat(12);
    const scope = { userId, agentId: "main" };
    await create(store, scope, "s");
    await append(store, scope, "s", "a", "b");
    await store.sessions.append(scope, "s", [
      { draft: { type: "compaction", summary: "S", firstKeptEntryId: "b", tokensBefore: 1 } },
    ]);
    await store.state.set(scope, "s", "tools", { active: [] });
    const blob = await store.blobs.put(scope, new Uint8Array(10));
    await create(store, { agentId: "main" }, "mine");
    await store.sessions.remove({ agentId: "main" }, "mine");
    const all = readdirSync(root, { recursive: true, encoding: "utf8" });
    for (const name of ["", ...all]) {
      const stat = statSync(join(root, name));
      expect([name, (stat.mode & 0o777).toString(8)]).toEqual([name, stat.isDirectory() ? "700" : "600"]);
    }
    const home = `users/${userSegment(userId)}`;
    expect(JSON.parse(readFileSync(join(root, home, "user.json"), "utf8"))).toEqual({ userId });
    const files = all.filter(
      (name) => statSync(join(root, name)).isFile() && !/\.db(-wal|-shm)?$|\.lock/.test(name),
    );
    expect(files.filter((name) => !name.startsWith("trash/")).toSorted()).toEqual(
      [
        `${home}/agents/main/blobs/${blob}`,
        `${home}/agents/main/context/s/tools.json`,
        `${home}/agents/main/sessions/s.jsonl`,
        `${home}/agents/main/sessions/s.log.jsonl`,
        `${home}/user.json`,
      ].toSorted(),
    );
    expect(files.filter((name) => name.startsWith("trash/")).map((name) => name.split("/").at(-1))).toEqual(
      expect.arrayContaining(["mine.jsonl", "mine.log.jsonl"]),
    );
    await store.close();
    const left = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
      /\.(lock|tmp|wait)/.test(name),
    );
    expect(left).toEqual([]);
  });
});
