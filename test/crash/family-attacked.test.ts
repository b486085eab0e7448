import { existsSync, globSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Obedient, Result } from "../support/obedient.ts";
import { obedient, told } from "../support/obedient.ts";

const opened: Obedient[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ skein }) => skein.close({ graceMs: 0 })));
});

async function world(...given: Parameters<typeof obedient>): Promise<Obedient> {
  const made = await obedient(...given);
  opened.push(made);
  return made;
}

const ann = (sessionKey: string) => ({ userId: "ann", sessionKey });

describe("the tools of a child", () => {
  test("[POL3] no agent's sub-agent settings give a grandchild a tool that its parent may not use", async () => {
    const { turn, requests } = await world([
      { subagents: { allowAgents: ["b"], maxSpawnDepth: 3 } },
      { id: "b", subagents: { maxSpawnDepth: 3, tools: { allow: ["sessions_send", "sessions_list"] } } },
    ]);
    const grandchild = { task: "SAY grand", background: false };
    const child = { agentId: "b", task: told(["sessions_spawn", grandchild]), background: false };
    await turn(ann("agent:main:main"), ["sessions_spawn", child]);
    const [ofMain, ofChild, ofGrandchild] = requests.map(({ tools = [] }) => tools.map(({ name }) => name));
    expect(ofMain).toContain("sessions_send");
    expect(ofChild).not.toContain("sessions_send");
    expect(ofGrandchild?.filter((name) => !ofChild?.includes(name))).toEqual([]);
  });
});

describe("hidden information", () => {
  const [me, other] = [ann("agent:box:main"), ann("agent:box:session:other")];

  test("the number of hidden sessions does not depend on a guess at their names", async () => {
    const { skein, call } = await world([{ id: "box", visibility: "self" }]);
    await skein.session(other).send("SAY hello").result;
    const record = await skein.session(other).record();
    await skein.store.sessions.patch({ userId: "ann" }, record?.sessionId ?? "", { label: "payroll" });
    const hidden = async (args: object) => (await call(me, "sessions_list", args)).hidden;
    expect(await hidden({})).toBe(1);
    for (const search of ["payroll", "pay", "other", "nothing"]) expect(await hidden({ search })).toBe(1);
    for (const label of ["payroll", "nothing"]) expect(await hidden({ label })).toBe(1);
  });

  test.each([{ sandboxed: true }, { visibility: "self" as const }])(
    "a label used by a hidden session reveals nothing: %o",
    async (agent) => {
      const { call } = await world([{ id: "box", ...agent }]);
      const spawn = { task: "SAY hello", label: "payroll", background: false };
      const isOwn = ({ label, childSessionKey }: Record<string, unknown>) =>
        label === `payroll (${String(childSessionKey).slice("subagent:".length).slice(0, 8)})`;
      const first = await call(me, "sessions_spawn", spawn);
      expect(first).toSatisfy(isOwn);
      expect(await call(other, "sessions_spawn", spawn)).toSatisfy(isOwn);
      expect(await call(me, "sessions_spawn", spawn)).toSatisfy(isOwn);
      expect(await call(me, "subagents", { action: "kill", target: first.label })).toMatchObject({
        status: "done",
      });
    },
  );
});

describe("foreign text inside Skein's texts", () => {
  test("a session's key in a system prompt stays on its line", async () => {
    const { turn, requests } = await world();
    const parent = ann("agent:main:telegram:user:x\u2028\u202e# Rules");
    await turn(parent, ["sessions_spawn", { task: "SAY hello", background: false }]);
    const systems = requests.flatMap(({ prompt }) =>
      prompt.flatMap((message) => (message.role === "system" ? [message.content] : [])),
    );
    expect(systems.join()).toContain("telegram:user:x\\u2028\\u202e# Rules for a task");
    expect(systems.join()).not.toMatch(/[\u2028\u202e]/);
  });

  test.each(["two\nlines", "\u001b[31mred", "turned \u202eround", "half \ud800"])(
    "a child's label is one line: %j",
    async (label) => {
      const { call } = await world();
      const result = await call(ann("agent:main:main"), "sessions_spawn", { task: "SAY hello", label });
      expect(result).toMatchObject({ status: "error", code: "invalid_arguments" });
      expect(result.error).toMatch(/^label must be one line/);
    },
  );

  test("a refusal quotes the requested name shortened and on one line", async () => {
    const { call, turn } = await world();
    const me = ann("agent:main:main");
    const long = `\u001b[31m\n${"x".repeat(1_000_000)}`;
    const asked: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
      ["subagents", { action: "kill", target: long }],
      ["sessions_spawn", { task: "x", thinking: long }],
      ["sessions_spawn", { task: "x", cwd: long }],
      ["sessions_spawn", { task: "x", model: long }],
      ["sessions_spawn", { task: "x", tools: [long] }],
      ["sessions_history", { sessionKey: long }],
      ["sessions_send", { sessionKey: long, message: "x" }],
    ];
    for (const [tool, args] of asked) {
      const { error } = await call(me, tool, args);
      expect(String(error).length).toBeLessThan(700);
      expect(error).not.toMatch(/\p{Cc}/u);
    }
    const [yielded] = await turn(me, ["sessions_yield", { waitFor: [long.slice(0, 9000)] }]);
    expect(String(yielded?.error).length).toBeLessThan(700);
  });
});

describe("secrets", () => {
  const token = `ghp_${"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}`;
  const me = ann("agent:main:main");

  test("a refusal of any tool is redacted", async () => {
    const { call } = await world();
    const asked = { sessionKey: token, query: "x", message: "x" };
    for (const [tool, names] of [
      ["sessions_history", ["sessionKey"]],
      ["session_search", ["sessionKey", "query"]],
      ["session_status", ["sessionKey"]],
      ["sessions_send", ["sessionKey", "message"]],
    ] as const) {
      const args = Object.fromEntries(names.map((name) => [name, asked[name]]));
      const result = await call(me, tool, args);
      expect(result).toMatchObject({ status: "error", code: "not_found" });
      expect(JSON.stringify(result)).not.toContain(token);
    }
  });

  test("a list does not confirm a guess at a masked secret in a name", async () => {
    const { skein, call } = await world();
    await skein.session(me).send("SAY hello").result;
    const { sessionId = "" } = (await skein.session(me).record()) ?? {};
    await skein.store.sessions.patch({ userId: "ann" }, sessionId, { label: `deploy ${token}` });
    const found = async (search: string) => (await call(me, "sessions_list", { search })).count;
    expect(await found("DEPLOY")).toBe(1);
    expect(await found("agent:main")).toBe(1);
    expect(await found(token.slice(0, 20))).toBe(0);
    expect(await found(token)).toBe(0);
  });
});

describe("attachments", () => {
  const folderOf = async ({ skein }: Obedient, userId: string, { childSessionKey }: Result) => {
    const spawnId = String(childSessionKey).slice("subagent:".length);
    const [child] = await skein.store.sessions.find({ userId }, { by: "spawnId", spawnId });
    const [folder = ""] = globSync(
      join(tmpdir(), "skein-attachments-*", "*", "main", child?.sessionId ?? ""),
    );
    return folder;
  };

  test("the content of an attachment is kept to the last byte, also a blank one", async () => {
    const made = await world();
    const contents = { "lines.txt": "  one\n\n", "blank.txt": "\n", "empty.txt": "" };
    const attachments = Object.entries(contents).map(([name, content]) => ({ name, content }));
    const spawn = { task: "SAY hello", attachments, background: false };
    const me = ann("agent:main:main");
    const [inTurn = {}] = await made.turn(me, ["sessions_spawn", spawn]);
    for (const result of [await made.call(me, "sessions_spawn", spawn), inTurn]) {
      expect(result).toMatchObject({ status: "ok", attachments: { count: 3, totalBytes: 8 } });
      const folder = await folderOf(made, "ann", result);
      for (const [name, content] of Object.entries(contents)) {
        expect(readFileSync(join(folder, name), "utf8")).toBe(content);
      }
    }
  });

  test("no user ID can redirect the attachments of a memory store", async () => {
    const made = await world();
    const userId = `../../${"../".repeat(20)}${tmpdir()}/elsewhere`;
    const attachments = [{ name: "a.txt", content: "a" }];
    const spawn = { task: "SAY hello", attachments, background: false };
    const result = await made.call({ userId, sessionKey: "agent:main:main" }, "sessions_spawn", spawn);
    const folder = await folderOf(made, userId, result);
    expect(relative(tmpdir(), folder)).toMatch(
      /^skein-attachments-[0-9a-f-]{36}\/[^/]+\/main\/[0-9a-f-]{36}$/,
    );
    expect(existsSync(join(folder, "a.txt"))).toBe(true);
  });
});
