import { existsSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { run as runCli } from "../support/cli.ts";
import type { Family } from "../support/family.ts";
import { announced, begun, call, calls, configFile, gate, results, withParts } from "../support/family.ts";
import { closeAll, newFolder } from "../support/skein.ts";

afterEach(closeAll);

const main = "agent:main:main";
const key = (name: string | number) => `agent:main:session:${name}`;

interface Row {
  readonly key: string;
  readonly messages?: readonly { readonly content: unknown }[];
  readonly messagesError?: string;
}

/** Returns the rows of a complete list. Repeats the call while the index is reported as behind. */
async function listed({ call: tool }: Family, args: object = {}): Promise<readonly Row[]> {
  for (;;) {
    const result = await tool("sessions_list", { limit: 200, ...args });
    expect(result.count).toBe((result.sessions as Row[]).length);
    if (result.indexing === undefined) return result.sessions as Row[];
  }
}

/** Returns every file below a folder that belongs to a session or has this name. */
function filesOf(dir: string, name: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.includes(name))
    .map((entry) => join(entry.parentPath, entry.name));
}

describe("files damaged while sessions are read", () => {
  const filled = async (dir: string, count: number) => {
    const family = await withParts({ "": () => ({ text: "Yes." }), Word: () => ({ text: "Yes." }) }, { dir });
    await family.make(main);
    for (let at = 0; at < count; at += 1) {
      const { sessionId } = await family.make(key(at));
      const draft = { type: "message", message: { role: "user", content: `Word ${at}` } } as const;
      await family.skein.store.sessions.append({ agentId: "main" }, sessionId, [{ draft }]);
    }
    return family;
  };

  test("[ATK16] a deleted or truncated log among a hundred affects at most its own row", async () => {
    const dir = newFolder();
    const family = await filled(dir, 100);
    const [gone, cut, empty] = await Promise.all([7, 8, 9].map((at) => family.at(key(at))));
    for (const file of filesOf(dir, gone?.sessionId ?? "")) rmSync(file);
    for (const file of filesOf(dir, cut?.sessionId ?? "")) truncateSync(file, 150);
    for (const file of filesOf(dir, empty?.sessionId ?? "")) truncateSync(file, 0);
    const harmed = new Set([7, 8, 9].map((at) => `session:${at}`));
    for (let again = 0; again < 2; again += 1) {
      const rows = await listed(family, { messageLimit: 1 });
      const whole = rows.filter((row) => row.key.startsWith("session:") && !harmed.has(row.key));
      expect(whole).toHaveLength(97);
      for (const row of whole) {
        expect(row.messages).toMatchObject([{ content: row.key.replace("session:", "Word ") }]);
      }
      for (const row of rows.filter(({ key: name }) => harmed.has(name))) {
        expect(row.messages ?? row.messagesError).toBeDefined();
      }
    }
    for (const name of harmed) {
      const history = await family.call("sessions_history", { sessionKey: name });
      expect(history.code).not.toBe("internal");
      expect(JSON.stringify(history)).not.toContain(dir);
    }
  });

  test("[ATK16] the index is deleted while families work, and nothing is lost", async () => {
    const dir = newFolder();
    const { tool, open } = gate();
    const family = await withParts(
      {
        Plan: [
          calls(["sessions_spawn", { task: "Geese", label: "geese" }], ["sessions_yield", {}]),
          { text: "Twelve." },
        ],
        Geese: [call("gate"), { text: "12 geese" }],
        Word: () => ({ text: "REPLY_SKIP" }),
      },
      { dir, agent: { tools: [tool] } },
    );
    await family.make(key("b"));
    const turn = begun(family.skein.session().send("Plan"));
    await family.until("run.tool", ({ sessionKey }) => sessionKey !== main);
    const index = filesOf(dir, "index.db");
    expect(index.length).toBeGreaterThan(0);
    for (const file of index) rmSync(file, { force: true });
    expect((await listed(family)).map((row) => row.key).toSorted()).toEqual([
      "main",
      "session:b",
      expect.stringMatching(/^subagent:/),
    ]);
    expect(await family.call("subagents", { action: "list" })).toMatchObject({
      active: [{ label: "geese" }],
    });
    const sent = await family.call("sessions_send", {
      sessionKey: key("b"),
      message: "Word",
      timeoutSeconds: 600,
    });
    expect(sent).toMatchObject({ status: "ok" });
    open();
    expect((await turn.result).reply).toBe("Twelve.");
    expect(announced(await family.linesAt(main))).toBe(1);
    expect(existsSync(index[0] ?? "")).toBe(true);
  });
});

describe("clock jumps", () => {
  test("[ATK17] back and far ahead during a yield and the archive: nothing ends early or twice", async () => {
    const start = Date.parse("2026-01-05T10:00:00Z");
    let now = start;
    const { tool, open } = gate();
    const dir = newFolder();
    const family = await withParts(
      {
        Plan: (_, index) =>
          index === 0
            ? calls(["sessions_spawn", { task: "Geese", runTimeoutSeconds: 0 }], ["sessions_yield", {}])
            : { text: `Word ${index}.` },
        Geese: [call("gate"), { text: "12 geese" }],
      },
      { dir, agent: { tools: [tool] }, clock: { now: () => now } },
    );
    const turn = begun(family.skein.session().send("Plan"));
    await family.until("run.sleeping");
    await family.until("run.tool", ({ sessionKey }) => sessionKey !== main);
    now = start - 48 * 3_600_000;
    expect((await family.skein.runs.get(turn.runId))?.state).toBe("sleeping");
    open();
    expect((await turn.result).reply).toBe("Word 1.");
    await family.settled(turn.runId);
    expect(announced(await family.linesAt(main))).toBe(1);
    const [child] = await family.skein.runs.list({ startedBy: turn.runId });
    expect(child?.state).toBe("ok");
    const archived = async () => (await family.at(child?.session.key ?? "")).meta.archived === true;
    await family.skein.session().send("Still there?").result;
    expect(await archived()).toBe(false);
    const rows = await listed(family);
    expect(rows).toHaveLength(2);
    for (const row of rows as unknown as { runtimeMs?: number }[]) {
      expect(row.runtimeMs ?? 0).toBeGreaterThanOrEqual(0);
    }
    now = start + 365 * 24 * 3_600_000;
    await family.skein.session().send("And now?").result;
    await expect.poll(archived).toBe(true);
    expect(announced(await family.linesAt(main))).toBe(1);
    expect(family.reported).toEqual([]);
  });
});

describe("on a terminal", () => {
  const hostile = "\u001b[31mred\u001b]0;title\u0007\n\u202eturned\u2028 \u0000\u009b2J\r line";

  test("[ATK18] labels, names, tasks and messages print as harmless text, one row per line", async () => {
    const dir = newFolder();
    const family = await withParts(
      {
        Plan: [call("sessions_spawn", { task: `Geese ${hostile}` }), { text: hostile }, { text: hostile }],
        Geese: [{ text: hostile }],
      },
      { dir },
    );
    const turn = family.skein.session().send("Plan");
    await turn.result;
    await family.settled(turn.runId);
    const { sessionId } = await family.at(main);
    const names = { label: hostile, displayName: hostile, lastTo: hostile };
    await family.skein.store.sessions.patch({ agentId: "main" }, sessionId, names);
    expect(results(family.asked("Plan")[1])).toMatchObject([{ status: "ok" }]);
    await family.skein.close({ graceMs: 0 });
    for (const [tool, args] of [
      ["sessions_list", { messageLimit: 3 }],
      ["subagents", { action: "list" }],
      ["sessions_history", { sessionKey: "main" }],
      ["session_status", {}],
      ["session_list", {}],
      ["session_search", { query: "turned" }],
      ["sessions_send", { label: hostile, message: "x" }],
      ["subagents", { action: "kill", target: hostile }],
    ] as const) {
      const printed = await runCli(["tool", tool, JSON.stringify(args), "--session", "main", "--no-wait"], {
        cwd: dir,
        env: { SKEIN_DIR: dir },
      });
      const text = printed.out + printed.err;
      expect(text).not.toBe("");
      expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
      expect(text.split("\n").filter((line) => line.startsWith("line"))).toEqual([]);
    }
  });

  test("[ATK19] a command does not wait for an agent that is not available here", async () => {
    const dir = newFolder();
    const settings = { tools: { agentToAgent: { enabled: true }, sessions: { visibility: "all" } } };
    const config = configFile(settings);
    const { make, skein } = await withParts({}, { dir });
    await make("agent:far:main");
    await skein.close();
    const send = JSON.stringify({ agentId: "far", message: "Are you there?" });
    const { out, err, exit } = await runCli(["tool", "sessions_send", send, "--config", config], {
      cwd: dir,
      env: { SKEIN_DIR: dir },
    });
    expect(out).toMatch(/status +sent/);
    expect(err).toContain("left for a process that has far, because this process cannot execute it");
    expect(exit).toBe(0);
  });
});
