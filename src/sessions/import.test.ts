import { describe, expect, test } from "vitest";
import { SkeinError } from "../core/errors.ts";
import { SessionTree } from "../core/tree.ts";
import type { ImportedSession } from "../interchange/imported-session.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import type { ImportSettings, ImportWish } from "./import.ts";
import { SessionImporter } from "./import.ts";

function source(sessionId: string, more: Partial<ImportedSession> = {}, count = 1): ImportedSession {
  const tree = SessionTree.create({ cwd: "/w", id: "s" });
  for (let i = 0; i < count; i++) tree.append({ type: "message", message: { role: "user", content: "x" } });
  return { source: "codex", sessionId, cwd: "/w", startedAt: 0, name: null, tree, notKept: [], ...more };
}

const keep: ImportSettings = { keepMetadata: true };

function importing(dryRun = false, settings: ImportSettings = {}) {
  const { sessions } = createMemoryStore();
  const cwdFor = (_agentId: string, wanted: string | null) => wanted ?? "/w";
  const options = { agentId: "main", dryRun, settings, clock: { now: () => 0 }, cwdFor };
  const importer = () => new SessionImporter(sessions, {}, options);
  return { sessions, importer };
}

describe("importing", () => {
  test("a session gets a key from its ID, and records its origin", async () => {
    const { sessions, importer } = importing();
    expect(await importer().import(source("one", {}, 3))).toEqual({
      imported: { key: "agent:main:session:one", sessionId: "one", entries: 3, notKept: [] },
    });
    const record = await sessions.get({}, "one");
    expect(record?.meta.importedFrom).toEqual({
      ...{ source: "codex", sessionId: "one", entries: 3, importedAt: "1970-01-01T00:00:00.000Z" },
      claimed: { cwd: "/w" },
    });
  });

  test("a session that was already imported is skipped, and reported as changed or not", async () => {
    const { importer } = importing();
    await importer().import(source("one"));
    const skipped = { key: "agent:main:session:one", sessionId: "one" };
    expect(await importer().import(source("one"))).toEqual({
      skipped: { ...skipped, why: "already imported" },
    });
    expect(await importer().import(source("one", {}, 2))).toEqual({
      skipped: { ...skipped, why: "already imported, but changed since" },
    });
  });

  test("a session that occurs twice in one import is skipped the second time", async () => {
    for (const dryRun of [false, true]) {
      const once = importing(dryRun).importer();
      await once.import(source("one"));
      expect(await once.import(source("one"))).toMatchObject({ skipped: { why: "named twice" } });
      expect(await once.import(source("one", { source: "pi" }))).toMatchObject({
        skipped: { why: "another file has the same session ID" },
      });
    }
  });

  test("a session in the trash stays there", async () => {
    const { sessions, importer } = importing();
    await importer().import(source("one"));
    await sessions.remove({}, "one");
    expect(await importer().import(source("one"))).toMatchObject({ skipped: { why: "in the trash" } });
  });

  test("[NWC23] if another session has the ID, a new ID is assigned, once", async () => {
    const { sessions, importer } = importing();
    await sessions.create({}, { key: "agent:main:main", sessionId: "one", cwd: "/w" });
    const sessionId = expect.stringMatching(/^imported-[0-9a-f]{32}$/);
    const notKept = [
      { what: expect.stringContaining("another session already has it"), count: 1, example: "one" },
    ];
    expect(await importer().import(source("one"))).toMatchObject({ imported: { sessionId, notKept } });
    expect(await importer().import(source("one"))).toMatchObject({
      skipped: { sessionId, why: "already imported" },
    });
  });

  test("a key or label that is in use is dropped, which is reported", async () => {
    const { sessions, importer } = importing(false, keep);
    const wish: ImportWish = {
      key: "agent:main:main",
      sessionId: "one",
      meta: { label: "l", channel: "irc" },
    };
    await sessions.create({}, { key: "agent:main:main", cwd: "/w", meta: { label: "l" } });
    expect(await importer().import(source("one"), wish)).toEqual({
      imported: {
        key: "agent:main:session:one",
        sessionId: "one",
        entries: 1,
        notKept: [
          {
            what: "The key was not kept: another session already has it.",
            count: 1,
            example: "agent:main:main",
          },
          { what: "The label was not kept: another session already has it.", count: 1, example: "l" },
        ],
      },
    });
    expect((await sessions.get({}, "one"))?.meta).toMatchObject({ channel: "irc" });
  });

  test.each([
    [{ key: "agent:research:cron:daily" }, "agent:research:cron:daily"],
    [{ key: "global" }, "agent:main:session:one"],
    [{ key: "not a key" }, "agent:main:session:one"],
    [{ agentId: "research" }, "agent:research:session:one"],
  ])("with %j its key is %s", async (wish, key) => {
    const outcome = await importing(false, keep).importer().import(source("one"), wish);
    expect(outcome).toMatchObject({ imported: { key } });
  });

  test("a dry run changes nothing, and reports what would happen", async () => {
    const { sessions, importer } = importing(true, keep);
    const run = importer();
    const wish = { key: "agent:main:main", meta: { label: "l" } };
    expect(await run.import(source("one"), wish)).toMatchObject({ imported: { key: "agent:main:main" } });
    const second = await run.import(source("two"), wish);
    expect(second).toMatchObject({ imported: { key: "agent:main:session:two", notKept: [{}, {}] } });
    expect((await sessions.list({}, {})).sessions).toEqual([]);
  });

  test("[ADM9] metadata in a list has no effect, and the report names it", async () => {
    const { sessions, importer } = importing();
    const wish: ImportWish = {
      key: "agent:main:main",
      meta: { label: "l", model: "p/m", sandboxed: true, delivery: { channel: "desk" } },
    };
    expect(await importer().import(source("one"), wish)).toMatchObject({
      imported: {
        key: "agent:main:session:one",
        notKept: [{ count: 4, example: "key, label, model, delivery" }],
      },
    });
    const { meta } = (await sessions.get({}, "one")) ?? {};
    const importedFrom = expect.objectContaining({ claimed: { key: wish.key, cwd: "/w", ...wish.meta } });
    expect(meta).toEqual({ displayName: "l", sandboxed: true, importedFrom });
  });

  test("[ADM10] a key or label given by the operator that is in use fails the import", async () => {
    for (const settings of [{ key: "main" }, { label: "l" }]) {
      for (const dryRun of [false, true]) {
        const { sessions, importer } = importing(dryRun, settings);
        await sessions.create({}, { key: "agent:main:main", cwd: "/w", meta: { label: "l" } });
        await expect(importer().import(source("one"))).rejects.toMatchObject({ code: "conflict" });
      }
    }
  });

  test("[ADM11] a folder that is not allowed is replaced by the agent's, with a note", async () => {
    const { sessions } = createMemoryStore();
    const cwdFor = (_agentId: string, wanted: string | null) => {
      if (wanted !== null) throw new SkeinError("invalid_arguments", { problem: "no", advice: "no" });
      return "/agents";
    };
    const options = { agentId: "main", dryRun: false, settings: keep, clock: { now: () => 0 }, cwdFor };
    const outcome = await new SessionImporter(sessions, {}, options).import(source("one"));
    expect(outcome).toMatchObject({ imported: { notKept: [{ example: "/w" }] } });
    expect((await sessions.get({}, "one"))?.cwd).toBe("/agents");
  });
});
