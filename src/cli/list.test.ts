import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Check } from "typebox/value";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "../../test/support/cli.ts";
import { seedFolder, seedNow } from "../../test/support/cli-folder.ts";
import { readingFolder } from "../../test/support/reading-folder.ts";
import { openFolder } from "../app/folder.ts";
import { SearchSchema, SessionListSchema, TrashListSchema } from "../protocol/session-list.ts";
import type { Terminal } from "./output/terminal.ts";

let dir = "";

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "skein-cli-list-"));
  await seedFolder(dir);
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const skein = (args: string[], more: Partial<Terminal> = {}) =>
  run([...args, "--dir", dir], { now: () => seedNow, ...more });
const list = async (...args: string[]) =>
  JSON.parse((await skein(["sessions", "ls", ...args, "--json"])).out);
const ids = ({ sessions }: { sessions: { sessionId: string }[] }) =>
  sessions.map(({ sessionId }) => sessionId);

describe("sessions ls", () => {
  test("prints the table", async () => {
    const { out, err, exit } = await skein(["sessions", "ls"]);
    expect({ err, exit }).toEqual({ err: "", exit: 0 });
    await expect(out).toMatchFileSnapshot("../../test/golden/cli/folder-ls.txt");
    const narrow = await skein(["sessions", "ls"], { columns: 60, isWatched: true });
    await expect(narrow.out).toMatchFileSnapshot("../../test/golden/cli/folder-ls-narrow.txt");
  });

  test("[CLG1] rows have canonical keys, children, and no nulls", async () => {
    const payload = await list();
    expect(Check(SessionListSchema, payload)).toBe(true);
    expect(payload.path).toBe(dir);
    const trip = payload.sessions.find(({ sessionId }: { sessionId: string }) => sessionId === "trip");
    expect(trip).toMatchObject({
      key: "agent:main:session:trip",
      label: "holiday",
      displayName: "Three days in Kyoto",
      model: "anthropic/claude-sonnet-4-5",
      transcriptPath: join(dir, "agents/main/sessions/trip.jsonl"),
    });
    expect(trip.childSessions.toSorted()).toEqual([
      "agent:main:subagent:trip:food",
      "agent:main:subagent:trip:gardens",
    ]);
    expect(JSON.stringify(payload)).not.toContain("null");
  });

  test("[CLG1] applies filters", async () => {
    expect(ids(await list("--kinds", "MAIN, cron")).toSorted()).toEqual(["daily", "home", "lab"]);
    expect(ids(await list("--kinds", "")).length).toBe(6);
    expect(ids(await list("--label", "holiday"))).toEqual(["trip"]);
    expect(ids(await list("--search", "KYOTO"))).toEqual(["trip"]);
    expect(ids(await list("--agent", "research"))).toEqual(["lab"]);
    expect(ids(await list("--active", "5"))).toEqual([]);
    expect(ids(await list("--active", "999999")).length).toBe(6);
    expect(ids(await list("--archived"))).toEqual([]);
  });

  test("[CLG1] pages cover every session once", async () => {
    const seen: string[] = [];
    for (let cursor: string | undefined, more = true; more; ) {
      const page = await list("--limit", "2", ...(cursor === undefined ? [] : ["--cursor", cursor]));
      seen.push(...ids(page));
      cursor = page.nextCursor;
      more = cursor !== undefined;
    }
    expect(seen).toHaveLength(6);
    expect(new Set(seen).size).toBe(6);
    const { out } = await skein(["sessions", "ls", "--limit", "2"]);
    expect(out).toMatch(/\nmore: --cursor \S+\n$/);
  });

  test.each([
    [["--kinds", "main,bot"], "main, group, cron, hook, node, other"],
    [["--cursor", "nonsense"], "nextCursor"],
    [["--limit", "0"], "whole number"],
    [["--trash", "--label", "x"], "--label"],
    [["--limit", "1001"], "a whole number from 1 to 1000"],
  ])("[CLI2] [CLI3] %j is a usage error that lists the valid values", async (args, text) => {
    const { err, exit } = await skein(["sessions", "ls", ...args]);
    expect(err).toContain(text);
    expect(err.trimEnd()).not.toContain("\n");
    expect(exit).toBe(2);
  });

  test("[CLG1] the payload is that of the method, and params that do not match it are a usage error", async () => {
    const folder = await readingFolder();
    try {
      await seedFolder(folder.dir);
      const look = async (...args: string[]) =>
        JSON.parse((await run([...args, "--json", "--dir", folder.dir])).out);
      const key = "agent:main:session:trip";
      expect(await look("sessions", "ls")).toEqual(await folder.admin("sessions.list", {}));
      expect(await look("sessions", "ls", "--trash")).toEqual(await folder.admin("sessions.trash", {}));
      expect(await look("sessions", "show", "holiday")).toEqual(
        await folder.admin("chat.history", { sessionKey: key }),
      );
      expect(await look("sessions", "tree", "holiday")).toEqual(await folder.admin("sessions.tree", { key }));
      expect(await look("sessions", "search", "gardens")).toEqual(
        await folder.admin("sessions.search", { query: "gardens" }),
      );
      expect(await look("sessions", "export", "holiday", "--format", "md")).toEqual(
        await folder.admin("sessions.export", { key, format: "md" }),
      );
      const model = "openai/gpt-5";
      expect(await look("context", "holiday", "--model", model)).toMatchObject({
        request: { messages: (await folder.admin("sessions.context", { key, model })).request.messages },
      });
      expect(await look("sessions", "ls", "--cursor", "nonsense")).toMatchObject({
        code: "invalid_arguments",
      });
    } finally {
      await folder.close();
    }
  });

  test("every displayed key can be typed, however narrow the terminal is", async () => {
    const other = mkdtempSync(join(tmpdir(), "skein-cli-keys-"));
    try {
      const store = await openFolder({ root: other });
      const keys = [
        "agent:claude-code:acp:d2e77109a231bf10",
        "agent:main:matrix:group:a-room-with-a-long-name%3Aexample.org:thread:an-event-of-fifty-characters-or-so-and-then-some",
        "agent:main:main",
      ];
      for (const [index, key] of keys.entries()) {
        const meta = { label: `${"a label that is long ".repeat(4)}${index}` };
        await store.sessions.create({}, { key, cwd: "/", meta });
      }
      await store.close();
      for (const more of [
        { columns: 30, isWatched: true },
        { columns: 80, isWatched: true },
        { columns: 30 },
      ]) {
        const { out } = await run(["sessions", "ls", "--dir", other], more);
        const shown = out
          .split("\n")
          .slice(1, -1)
          .map((line) => line.split(" ")[0] ?? "");
        expect(shown).toHaveLength(3);
        const found = await Promise.all(
          shown.map((key) => run(["sessions", "show", key, "--json", "--dir", other])),
        );
        expect(found.map(({ exit }) => exit)).toEqual([0, 0, 0]);
      }
    } finally {
      rmSync(other, { recursive: true, force: true });
    }
  });

  test("reports an empty list", async () => {
    expect((await skein(["sessions", "ls", "--search", "nothing"])).out).toBe("no matching sessions\n");
    expect((await skein(["sessions", "ls", "--user", "nobody"])).out).toBe("no sessions\n");
    expect((await skein(["sessions", "ls", "--trash", "--user", "nobody"])).out).toBe("the trash is empty\n");
  });

  test("[CLG1] lists the trash", async () => {
    const payload = await list("--trash");
    expect(Check(TrashListSchema, payload)).toBe(true);
    expect(payload.sessions).toMatchObject([
      { key: "agent:main:session:old-trip", sessionId: "old-trip", label: "last year" },
    ]);
    const { out } = await skein(["sessions", "ls", "--trash"]);
    expect(out).toMatch(/^SESSION ID.*REMOVED\nold-trip +session:old-trip +other +last year/);
  });

  test("[ATK18] a hostile label is shown, not interpreted", async () => {
    const other = mkdtempSync(join(tmpdir(), "skein-cli-hostile-"));
    try {
      const store = await openFolder({ root: other });
      const meta = { label: "\u001b[2J\nowned\u202e", displayName: "x".repeat(5000) };
      await store.sessions.create({}, { key: "agent:main:session:h", cwd: "/", meta });
      await store.close();
      const { out } = await run(["sessions", "ls", "--dir", other]);
      expect(out.split("\n")).toHaveLength(3);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
      expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
    } finally {
      rmSync(other, { recursive: true, force: true });
    }
  });
});

describe("sessions search", () => {
  const search = async (...args: string[]) =>
    JSON.parse((await skein(["sessions", "search", ...args, "--json"])).out);

  test("[CLG1] finds, filters, and matches its schema", async () => {
    const found = await search("gardens");
    expect(Check(SearchSchema, found)).toBe(true);
    expect(found.count).toBeGreaterThan(1);
    const hits = async (...args: string[]) => (await search("gardens", ...args)).hits;
    for (const hit of await hits("--session", "holiday")) expect(hit.sessionId).toBe("trip");
    for (const hit of await hits("--role", "assistant")) expect(hit.role).toBe("assistant");
    for (const hit of await hits("--agent", "research")) expect(hit.sessionId).toBe("lab");
    expect(await hits("--limit", "1")).toHaveLength(1);
    expect(await hits("--since", "1d")).toEqual([]);
    expect((await hits("--since", "3d")).length).toBe(found.count);
    expect(await hits("--until", "2026-01-01")).toEqual([]);
    expect((await search("gardens", "--session", "nobody")).code).toBe("not_found");
  });

  test("takes several words, and phrases in quotes", async () => {
    expect(await search("counter", "gardens")).toEqual(await search("counter gardens"));
    expect((await search("gardens", "counter", "--limit", "1")).count).toBe(1);
    expect((await search('"counter', 'gardens"')).count).toBe(0);
  });

  test("prints the hits", async () => {
    const { out } = await skein(["sessions", "search", "counter"]);
    await expect(out).toMatchFileSnapshot("../../test/golden/cli/folder-search.txt");
    expect((await skein(["sessions", "search", "zeppelin"])).out).toBe("nothing found\n");
  });

  test.each([[["  "]], [["x", "--since", "yesterday"]], [["x", "--limit", "none"]], [[]]])(
    "[CLI2] %j is a usage error",
    async (args) => {
      expect((await skein(["sessions", "search", ...args])).exit).toBe(2);
    },
  );
});
