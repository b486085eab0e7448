import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Family, FamilyOptions } from "../support/family.ts";
import { withParts } from "../support/family.ts";
import { closeAll, newFolder } from "../support/skein.ts";

afterEach(closeAll);

const main = "agent:main:main";
const child = "agent:main:subagent:root:one";
const grandchild = "agent:main:subagent:one:two";
const stranger = "agent:main:session:stranger";
const foreign = "agent:other:main";

interface Planted {
  readonly userId?: string;
  readonly spawnedBy?: string;
  readonly label?: string;
}

async function plant({ skein }: Family, key: string, { userId, ...meta }: Planted = {}): Promise<string> {
  const scope = { agentId: key.split(":")[1] ?? "main", ...(userId === undefined ? {} : { userId }) };
  const { sessionId } = await skein.store.sessions.create(scope, { key, cwd: "/", meta });
  const draft = { type: "message", message: { role: "user", content: `in ${key}` } } as const;
  await skein.store.sessions.append(scope, sessionId, [{ draft }]);
  return sessionId;
}

/** A session with a child and a grandchild, another session of the same agent, and a session of a different agent. */
async function withTree(options: FamilyOptions): Promise<Family> {
  const family = await withParts({}, { others: [{ id: "other" }], ...options });
  await plant(family, main);
  await plant(family, child, { spawnedBy: main });
  await plant(family, grandchild, { spawnedBy: child });
  await plant(family, stranger, { label: "payroll" });
  await plant(family, foreign);
  return family;
}

/** Every way to refer to a session in a call that reads or writes it. */
const waysTo = (sessionKey: string) =>
  [
    ["sessions_history", { sessionKey }],
    ["session_status", { sessionKey }],
    ["session_search", { query: "in", sessionKey }],
    ["sessions_send", { sessionKey, message: "hello" }],
  ] as const;

describe("visibility tree", () => {
  test("[ACC1] a session reaches itself and what it spawned, at any depth", async () => {
    const family = await withTree({ agent: { visibility: "tree" } });
    for (const key of [main, child, grandchild]) {
      const { messages } = await family.call("sessions_history", { sessionKey: key });
      expect(JSON.stringify(messages)).toContain(`in ${key}`);
    }
    const { sessions } = await family.call("sessions_list", {});
    expect((sessions as { key: string }[]).map(({ key }) => key).sort()).toEqual([
      "main",
      "subagent:one",
      "subagent:two",
    ]);
  });

  test.each([stranger, foreign])("[ACC1] a session does not reach %s", async (key) => {
    const family = await withTree({ agent: { visibility: "tree" } });
    for (const [tool, args] of waysTo(key)) {
      const result = await family.call(tool, args);
      expect([tool, result.status]).toEqual([tool, "forbidden"]);
      expect(JSON.stringify(result)).not.toContain(`in ${key}`);
    }
  });

  test("[ACC1] a session does not reach the tree of another one", async () => {
    const family = await withTree({ agent: { visibility: "tree" } });
    for (const sessionKey of [main, child, grandchild])
      expect((await family.call("sessions_history", { sessionKey }, stranger)).status).toBe("forbidden");
  });
});

/** Returns the results of calls that name a session, without the ID that is unique to each `sessions_send` call. */
async function answersTo(family: Family, names: readonly string[]): Promise<readonly object[]> {
  const answers: object[] = [];
  for (const name of names) {
    for (const [tool, args] of waysTo(name)) {
      const { runId: _, ...result } = await family.call(tool, args);
      answers.push({ tool, name, result });
    }
  }
  return answers;
}

describe("sessions of another user", () => {
  test.each(["self", "tree", "agent", "all"] as const)(
    "[ACC3] appear not to exist, with visibility %s",
    async (visibility) => {
      const family = await withTree({
        agent: { visibility },
        settings: { tools: { agentToAgent: { enabled: true, allow: ["* -> *"] } } },
      });
      const names = ["agent:main:session:diary", "agent:other:session:diary", "diary", "plan"];
      const read = async () => [
        ...(await answersTo(family, names)),
        await family.call("sessions_list", {}),
        await family.call("session_search", { query: "diary" }),
      ];
      const before = await read();
      await plant(family, "agent:main:session:diary", { userId: "ann", label: "plan" });
      await plant(family, "agent:other:session:diary", { userId: "ann" });
      expect(await read()).toEqual(before);
      if (visibility !== "self") expect(before[0]).toMatchObject({ result: { code: "not_found" } });
    },
  );
});

describe("a sandboxed session", () => {
  test("[ACC4] cannot tell whether a session outside its tree exists", async () => {
    const sandboxed = { sandboxed: true, visibility: "all" as const };
    const alone = await withParts({}, { agent: sandboxed, others: [{ id: "other" }] });
    await plant(alone, main);
    const among = await withTree({ agent: sandboxed });
    const names = [stranger, "stranger", "session:stranger", "payroll", foreign, "cron:none"];
    expect(await answersTo(among, names)).toEqual(await answersTo(alone, names));
    expect((await among.call("sessions_history", { sessionKey: child })).messages).toHaveLength(1);
  });

  test("[ACC4] gets the same lists whether or not there are others", async () => {
    const alone = await withParts({}, { agent: { sandboxed: true } });
    await plant(alone, main);
    const among = await withTree({ agent: { sandboxed: true } });
    const lists = async (family: Family, search: object) => {
      const { count, hidden, visibility } = await family.call("session_search", {
        query: "payroll",
        ...search,
      });
      return { count, hidden, visibility };
    };
    expect(await lists(among, {})).toEqual(await lists(alone, {}));
    expect(await among.call("sessions_list", {})).not.toHaveProperty("hidden");
    expect(await alone.call("sessions_list", {})).not.toHaveProperty("hidden");
  });
});

describe("agentToAgent", () => {
  test("[ACC9] a pair of agents is directional", async () => {
    const family = await withTree({
      settings: { tools: { agentToAgent: { enabled: true, allow: ["main -> other"] } } },
      agent: { visibility: "all" },
      others: [{ id: "other", visibility: "all" }],
    });
    const read = (from: string, to: string) => family.call("sessions_history", { sessionKey: to }, from);
    expect((await read(main, foreign)).messages).toHaveLength(1);
    expect(await read(foreign, main)).toMatchObject({ status: "forbidden" });
  });

  test.each([
    ["no pair", { enabled: true, allow: ["other -> main"] }],
    ["not enabled", { enabled: false, allow: ["main -> other"] }],
  ])("[ACC9] without its pair an agent does not reach the other: %s", async (_, agentToAgent) => {
    const family = await withTree({ settings: { tools: { agentToAgent } }, agent: { visibility: "all" } });
    expect((await family.call("sessions_history", { sessionKey: foreign })).status).toBe("forbidden");
  });
});

describe("the working directory of a child", () => {
  test.each([
    ["inside the parent's", "parent/deep", "parent/deep"],
    ["the parent's by default", undefined, "parent"],
    ["inside a root of the parent's agent", "shared/deep", "shared/deep"],
    ["inside a root of the child's agent", "theirs/deep", "theirs/deep"],
    ["elsewhere", "outside", null],
    ["next to the parent's, with its name in front", "parent-not", null],
    ["above the parent's", ".", null],
  ])("[FBD7] %s", async (_, wanted, expected) => {
    const home = realpathSync(newFolder());
    for (const each of ["parent/deep", "parent-not", "shared/deep", "theirs/deep", "outside"])
      mkdirSync(join(home, each), { recursive: true });
    const family = await withParts(
      { Work: [{ text: "Done." }] },
      {
        agent: {
          roots: [join(home, "parent"), join(home, "shared")],
          cwd: join(home, "parent"),
          subagents: { allowAgents: ["other"] },
        },
        others: [{ id: "other", roots: [join(home, "theirs")] }],
      },
    );
    await family.skein.store.sessions.create({ agentId: "main" }, { key: main, cwd: join(home, "parent") });
    const cwd = wanted === undefined ? {} : { cwd: join(home, wanted) };
    const spawned = await family.call("sessions_spawn", {
      task: "Work",
      agentId: "other",
      background: false,
      mode: "session",
      ...cwd,
    });
    if (expected === null) {
      expect(spawned.status).not.toBe("ok");
      expect(family.asked("Work")).toEqual([]);
      return;
    }
    expect(spawned.status).toBe("ok");
    const [run] = await family.skein.runs.list();
    const record = await family.skein.session({ sessionKey: run?.session.key ?? "" }).record();
    expect(record?.cwd).toBe(join(home, expected));
  });
});

describe("sessions_history", () => {
  const secret = `ghp_${"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}`;
  const open = async (texts: readonly string[]) => {
    const family = await withParts({});
    const { sessionId } = await family.make(main);
    const items = texts.map((content) => ({
      draft: { type: "message", message: { role: "user", content } } as const,
    }));
    const { entries } = await family.skein.store.sessions.append({ agentId: "main" }, sessionId, items);
    return { ...family, sessionId, entryIds: entries.map(({ id }) => id) };
  };
  type Page = { messages: { content: string }[]; nextBefore?: string };

  test.each([7, 100, 1000])("[RDT6] pages of %i reach every message of the active branch", async (limit) => {
    // Some messages are too large to fit on one page together.
    const texts = Array.from(
      { length: 250 },
      (_, index) => `m${index} ${index % 9 === 0 ? "x ".repeat(1900) : ""}`,
    );
    const family = await open(texts);
    const scope = { agentId: "main" };
    await family.skein.store.sessions.branch(scope, family.sessionId, family.entryIds[199] ?? "");
    const seen: string[] = [];
    for (let before: string | undefined, more = true; more; ) {
      const page = (await family.call("sessions_history", {
        sessionKey: "main",
        limit,
        ...(before === undefined ? {} : { before }),
      })) as unknown as Page;
      seen.unshift(...page.messages.map(({ content }) => content.split(" ")[0] ?? ""));
      before = page.nextBefore;
      more = before !== undefined;
    }
    expect(seen).toEqual(Array.from({ length: 200 }, (_, index) => `m${index}`));
  });

  test("[RDT7] masks a secret that is at the cut of a text", async () => {
    const family = await open(
      [3970, 3980, 3990, 3999].map(
        (length) => `${"x ".repeat(2000).slice(0, length)} ${secret} ${"y ".repeat(99)}`,
      ),
    );
    const { messages, truncated } = await family.call("sessions_history", { sessionKey: "main" });
    expect(truncated).toBe(true);
    expect(messages).toHaveLength(4);
    expect(JSON.stringify(messages)).not.toContain(secret.slice(0, 8));
  });
});
