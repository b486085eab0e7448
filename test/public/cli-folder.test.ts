import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Terminal } from "../../src/cli/main.ts";
import { createStore } from "../../src/entry-store.ts";
import { family, run, withoutFigures } from "../support/cli.ts";
import { familyTree, seedFolder, seedNow } from "../support/cli-folder.ts";

let home = "";
let seeded = "";
let dir = "";
let count = 0;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-cli-folder-"));
  seeded = join(home, "seeded");
  await seedFolder(seeded);
});
beforeEach(() => {
  dir = join(home, `copy-${count++}`);
  cpSync(seeded, dir, { recursive: true });
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const skein = (...args: string[]) => run([...args, "--dir", dir], { now: () => seedNow });
const json = async (...args: string[]) => JSON.parse((await skein(...args, "--json")).out);
/** Returns the session IDs in a list, in list order. */
const ids = (list: { sessions: { sessionId: string }[] }) => list.sessions.map(({ sessionId }) => sessionId);

test("sessions ls lists the session that all messages share", async () => {
  const store = await createStore({ dir });
  await store.sessions.create({ agentId: "main" }, { key: "global", cwd: home });
  await store.close();
  expect((await skein("sessions", "ls")).out).toMatch(/^global /m);
});

describe("references", () => {
  test.each([
    ["agent:main:session:trip", "trip"],
    ["session:trip", "trip"],
    ["trip", "trip"],
    ["TRIP", "trip"],
    ["holiday", "trip"],
    ["tri", "trip"],
    ["main", "home"],
    ["cron:daily", "daily"],
    ["reports", "daily"],
    ["subagent:gardens", "01-gardens"],
    ["agent:main:subagent:trip:gardens", "01-gardens"],
    ["01-g", "01-gardens"],
    ["agent:research:main", "lab"],
  ])("[SNM1] %s is the session %s", async (ref, sessionId) => {
    expect((await json("sessions", "show", ref)).sessionId).toBe(sessionId);
  });

  test("[SNM1] main and labels are those of --agent", async () => {
    expect((await json("sessions", "show", "main", "--agent", "research")).sessionId).toBe("lab");
    expect((await json("sessions", "show", "holiday", "--agent", "research")).code).toBe("not_found");
    expect((await json("sessions", "show", "main", "--agent", "Some One")).code).toBe("invalid_agent_id");
  });

  test("[SNM1] a prefix of several IDs is ambiguous", async () => {
    expect(await json("sessions", "show", "01-")).toMatchObject({ code: "ambiguous" });
  });

  test("[SNM1] with a slash or .jsonl it is a file, whatever the folder contains", async () => {
    const file = join(dir, "agents/main/sessions/trip.jsonl");
    expect((await json("sessions", "show", file)).sessionId).toBe("trip");
    expect((await json("sessions", "show", "trip.jsonl")).error).toContain("File not found");
  });

  test("[SNM1] an entry is named by its ID or by a unique ending", async () => {
    const whole = await json("sessions", "show", "trip");
    const [, second] = whole.messages;
    for (const name of [second.id, second.id.slice(-8), `…${second.id.slice(-8)}`]) {
      expect((await json("sessions", "show", "trip", "--before", name)).messages).toHaveLength(1);
    }
    expect((await json("sessions", "show", "trip", "--before", "zzzzzzzz")).code).toBe("not_found");
  });
});

describe("labels of other agents", () => {
  const spawned = async (
    ...sessions: [key: string, label: string, spawnedBy?: string, userId?: string][]
  ) => {
    const store = await createStore({ dir, durability: "os" });
    try {
      for (const [key, label, spawnedBy, userId] of sessions) {
        const meta = { label, ...(spawnedBy === undefined ? {} : { spawnedBy }) };
        await store.sessions.create(userId === undefined ? {} : { userId }, { key, cwd: "/", meta });
      }
    } finally {
      await store.close();
    }
  };
  const trip = "agent:main:session:trip";

  test("a child of another agent is found by its label, also if archived", async () => {
    await spawned(["agent:claude:acp:c1", "mender", trip], ["agent:claude:acp:c2", "hers", trip, "alice"]);
    const keyOf = async (...args: string[]) =>
      (await json("sessions", "show", ...args, "--limit", "1")).sessionKey;
    expect(await keyOf("mender")).toBe("agent:claude:acp:c1");
    expect((await skein("sessions", "archive", "mender")).exit).toBe(0);
    expect(await keyOf("mender")).toBe("agent:claude:acp:c1");
    expect((await json("sessions", "show", "mender", "--agent", "research")).code).toBe("not_found");
    expect((await json("sessions", "show", "mender", "--user", "alice")).code).toBe("not_found");
    // The agent's own labels take precedence.
    expect(await keyOf("hers", "--user", "alice")).toBe(trip);
  });

  test("an unknown child is refused with the agent to add; several are distinguished by their keys", async () => {
    await spawned(
      ["agent:claude:session:x", "desk"],
      ["agent:claude:acp:c1", "one", trip],
      ["agent:codex:acp:c2", "one", trip],
    );
    const { err } = await skein("sessions", "show", "desk");
    expect(err).toBe(
      `error: Session not found: "desk". Searched ${dir} as agent main of the unnamed user; a session of agent claude has this label; add --agent claude to use it.\n`,
    );
    expect((await skein("sessions", "show", "desk", "--agent", "claude")).exit).toBe(0);
    const several = await json("sessions", "show", "one");
    expect(several.code).toBe("ambiguous");
    for (const key of ["agent:claude:acp:c1", "agent:codex:acp:c2"]) expect(several.error).toContain(key);
  });
});

describe("missing sessions", () => {
  test("reports where it looked, and what to type next", async () => {
    const { err, exit } = await run(["sessions", "show", "nobody", "--dir", dir, "--user", "alice"]);
    expect(exit).toBe(1);
    expect(err).toBe(
      `error: Session not found: "nobody". Searched ${dir} as agent main of user alice; see skein sessions ls --dir ${dir} --user alice.\n`,
    );
  });

  test("in the trash: reports how to restore it", async () => {
    const { err } = await skein("sessions", "show", "old-trip");
    expect(err).toContain(`It is in the trash. To restore it: skein sessions restore old-trip --dir ${dir}.`);
    const again = await run(["sessions", "restore", "old-trip", "--dir", dir]);
    expect(again.exit).toBe(0);
  });

  const readers = [
    ["sessions", "ls"],
    ["sessions", "show", "trip"],
    ["sessions", "tree", "trip"],
    ["sessions", "search", "x"],
    ["sessions", "rename", "trip", "x"],
    ["sessions", "rm", "trip"],
    ["sessions", "restore", "trip"],
    ["sessions", "redact", "trip", "x", "--yes"],
    ["sessions", "repair", "trip"],
    ["sessions", "reset", "trip"],
    ["sessions", "fork", "trip"],
    ["sessions", "archive", "trip"],
    ["sessions", "compact", "trip", "--summary", "x", "--keep-from", "y"],
    ["context", "trip"],
    ["users", "rm", "alice", "--yes"],
  ];
  test.each(readers.map((args) => [args]))("[CLI16] %j creates no folder", async (args) => {
    const missing = join(home, "missing");
    const { err, exit } = await run([...args, "--dir", missing]);
    expect(exit).toBe(1);
    expect(err).toContain(`skein sessions new --dir ${missing}`);
    expect(existsSync(missing)).toBe(false);
    const other = join(home, "other");
    mkdirSync(join(other, "agents"), { recursive: true });
    writeFileSync(join(other, "agents/notes.txt"), "mine");
    expect((await run([...args, "--dir", other])).exit).toBe(1);
    expect(readdirSync(other)).toEqual(["agents"]);
  });

  test("[CLI16] new creates one", async () => {
    const fresh = join(home, "fresh/deeper");
    const made = await run(["sessions", "new", "first", "--dir", fresh]);
    expect(made).toMatchObject({ exit: 0, err: "" });
    expect(ids(JSON.parse((await run(["sessions", "ls", "--dir", fresh, "--json"])).out))).toEqual(["first"]);
    rmSync(join(fresh, "work.db"));
    expect((await run(["sessions", "show", "first", "--dir", fresh])).exit).toBe(0);
  });
});

describe("global options", () => {
  test("are accepted before or after the command", async () => {
    const orders = [
      ["--dir", dir, "--user", "alice", "--json", "sessions", "ls"],
      ["sessions", "--dir", dir, "--user", "alice", "ls", "--json"],
      ["sessions", "ls", "--json", "--user", "alice", "--dir", dir],
    ];
    const printed = await Promise.all(orders.map((args) => run(args)));
    expect(new Set(printed.map(({ out }) => out)).size).toBe(1);
    expect(ids(JSON.parse(printed[0]?.out ?? ""))).toEqual(["trip"]);
  });

  test("the folder is --dir, then SKEIN_DIR, then .skein at home; relative ones start at the user's folder", async () => {
    const shows = async (args: string[], more: Parameters<typeof run>[1]) => (await run(args, more)).exit;
    const show = ["sessions", "show", "holiday"];
    expect(await shows(show, { env: { SKEIN_DIR: dir } })).toBe(0);
    expect(await shows(show, { env: { SKEIN_DIR: "seeded" }, cwd: home })).toBe(0);
    expect(await shows([...show, "--dir", "seeded"], { env: { SKEIN_DIR: "/nowhere" }, cwd: home })).toBe(0);
    const user = join(home, "user");
    cpSync(seeded, join(user, ".skein"), { recursive: true });
    expect(await shows(show, { home: user })).toBe(0);
    expect(await shows(show, { env: { SKEIN_DIR: "" }, home: user })).toBe(0);
    expect(await shows(show, {})).toBe(1);
  });

  test("two users never share anything", async () => {
    const alice = (...args: string[]) => json(...args, "--user", "alice");
    expect(ids(await alice("sessions", "ls"))).toEqual(["trip"]);
    expect((await alice("sessions", "show", "trip")).messages).toHaveLength(4);
    expect((await alice("sessions", "show", "holiday")).code).toBe("not_found");
    expect((await alice("sessions", "restore", "old-trip")).code).toBe("not_found");
    expect((await alice("sessions", "ls", "--trash")).count).toBe(0);
    const { hits } = await alice("sessions", "search", "Kyoto");
    expect(new Set(hits.map(({ sessionId }: { sessionId: string }) => sessionId))).toEqual(new Set(["trip"]));
    await alice("sessions", "rename", "trip", "holiday");
    await alice("sessions", "rm", "trip");
    expect((await json("sessions", "show", "holiday")).messages.length).toBeGreaterThan(4);
    await json("users", "rm", "alice", "--yes");
    expect((await json("sessions", "show", "holiday")).sessionId).toBe("trip");
    expect((await alice("sessions", "ls", "--trash")).count).toBe(0);
    expect((await json("sessions", "ls", "--user", "")).code).toBe("invalid_user_id");
  });
});

describe("a reference instead of a file", () => {
  test.each([["sessions", "tree"], ["sessions", "show"], ["context"]])(
    "%s %s prints the same session as for its file",
    async (...words) => {
      const command = words.filter((word) => word !== undefined);
      // A session uses its agent's model. A file uses the model that it names.
      const options = command[0] === "context" ? ["--model", "anthropic/claude-sonnet-4-5"] : [];
      const ours = await skein(...command, "trip", ...options);
      const file = await run([...command, join(family, "main.jsonl"), ...options]);
      expect(ours.exit).toBe(0);
      // The heading names the session. A file's tools are unknown. The store adds nothing else.
      const shown = ({ out }: { out: string }) =>
        withoutFigures(out)
          .split("\n")
          .slice(1)
          .filter((line) => !line.startsWith("tools "));
      expect(shown(ours)).toEqual(shown(file));
    },
  );
});

describe("permanent deletion", () => {
  const wish = familyTree("main").path()[2]?.id ?? "";
  const change = (args: string[], more: Partial<Terminal> = {}) =>
    run([...args, "--dir", dir], { now: () => seedNow, cwd: home, ...more });

  test("[CLI21] a purge asks, and does it only after a yes", async () => {
    const purge = ["sessions", "rm", "last year", "--purge"];
    const asked: string[] = [];
    const answering = (answer: string) => ({
      ask: async (question: string) => {
        asked.push(question);
        return answer;
      },
    });
    expect((await change(purge, answering("n"))).exit).toBe(2);
    expect((await json("sessions", "ls", "--trash")).count).toBe(1);
    expect((await change(purge, answering("y"))).out).toBe("permanently deleted session:old-trip\n");
    expect(asked[0]).toContain("Permanently delete session:old-trip (old-trip)?");
    expect((await json("sessions", "ls", "--trash")).count).toBe(0);
    expect(globSync("**/old-trip*", { cwd: dir })).toEqual([]);
  });

  test("[CLI21] the content is erased in every copy, and summaries that may repeat it are listed", async () => {
    await json("sessions", "fork", "trip", "--id", "copy");
    const { out } = await change(["sessions", "redact", "trip", wish.slice(-8)], { ask: async () => "yes" });
    expect(out).toMatch(/^permanently erased in:\n/);
    expect(out).toMatch(/\n {2}copy +1 entry\n/);
    expect(out).toContain("check these summaries, which may contain the erased content");
    expect((await json("sessions", "show", "copy")).messages[0].content).toEqual([
      { type: "text", text: "[redacted]" },
    ]);
    expect((await change(["sessions", "redact", "trip", wish, "--yes"])).out).toBe(
      "there was nothing left to erase\n",
    );
  });

  test("[CLI21] everything of one user is gone, and nothing of another", async () => {
    const refused = await change(["users", "rm", "alice"], { ask: async () => "no" });
    expect(refused.exit).toBe(2);
    const { out } = await change(["users", "rm", "alice"], { ask: async () => "y" });
    expect(out).toBe("permanently deleted user alice and 1 session\n");
    expect(existsSync(join(dir, "users/alice/agents/main/sessions/trip.jsonl"))).toBe(false);
    expect((await json("sessions", "show", "trip")).sessionKey).toBe("agent:main:session:trip");
  });

  test.each([
    [["sessions", "rm", "old-trip", "--purge"]],
    [["sessions", "redact", "trip", wish]],
    [["users", "rm", "alice"]],
  ])("[CLI21] without a terminal, %j requires --yes", async (args) => {
    const { err, exit } = await change(args);
    expect(exit).not.toBe(0);
    expect(err).toContain("--yes");
    expect((await json("sessions", "ls", "--trash")).count).toBe(1);
    expect((await change(["sessions", "show", "trip", "--user", "alice"])).exit).toBe(0);
  });
});
