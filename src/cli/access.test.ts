import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Check } from "typebox/value";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "../../test/support/cli.ts";
import { seedFolder } from "../../test/support/cli-folder.ts";
import { openFolder } from "../app/folder.ts";
import type { AccessPayload } from "../protocol/directory.ts";
import { AccessSchema } from "../protocol/directory.ts";
import type { Terminal } from "./output/terminal.ts";

let dir = "";

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "skein-cli-access-"));
  await seedFolder(dir);
  const store = await openFolder({ root: dir, durability: "os" });
  const meta = { sandboxed: true, label: "boxed" };
  await store.sessions.create({}, { key: "agent:main:hook:box", sessionId: "box", cwd: "/", meta });
  await store.close();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const skein = (args: string[], more: Partial<Terminal> = {}) => run(["access", ...args, "--dir", dir], more);
const payload = async (...args: string[]): Promise<AccessPayload> => {
  const { out, err, exit } = await skein([...args, "--json"]);
  expect({ err, exit }).toEqual({ err: "", exit: 0 });
  return JSON.parse(out);
};
const answers = ({ explanations }: AccessPayload) =>
  explanations.map(({ decision }) => (decision.allowed ? "allowed" : decision.code));

describe("access", () => {
  test("prints a table of rules for each action, with the decision last", async () => {
    const { out, err, exit } = await skein(["trip", "cron:daily"]);
    expect({ err, exit }).toEqual({ err: "", exit: 0 });
    await expect(out).toMatchFileSnapshot("../../test/golden/cli/access.txt");
    const narrow = await skein(["trip", "cron:daily", "--action", "send"], { columns: 60, isWatched: true });
    await expect(narrow.out).toMatchFileSnapshot("../../test/golden/cli/access-narrow.txt");
    const child = await skein(["trip", "subagent:food", "--action", "history"]);
    expect(child.out).toMatch(
      /\nhistory: allowed\. The requester spawned it, directly or through other sessions\.\n$/,
    );
  });

  test("--json prints the explanations unchanged", async () => {
    const all = await payload("trip", "cron:daily");
    expect(Check(AccessSchema, all)).toBe(true);
    expect(all.asker).toEqual({
      key: "agent:main:session:trip",
      sessionId: "trip",
      agentId: "main",
      sandboxed: false,
    });
    expect(all.explanations.map(({ action }) => action)).toEqual(["list", "history", "send", "status"]);
    expect(answers(all)).toEqual(Array(4).fill("tree_visibility_restricted"));
    for (const { steps } of all.explanations)
      expect(steps.at(-1)).toMatchObject({ rule: "tree_visibility", outcome: "refuse" });
    const one = await payload("trip", "subagent:food", "--action", "send");
    expect(one.explanations).toMatchObject([{ action: "send", decision: { allowed: true } }]);
  });

  test.each([
    ["trip", "current", "allowed"],
    ["trip", "holiday", "allowed"],
    ["holiday", "agent:main:subagent:trip:gardens", "allowed"],
    ["01-gar", "trip", "tree_visibility_restricted"],
    ["trip", "main", "tree_visibility_restricted"],
    ["trip", "agent:research:main", "tree_visibility_restricted"],
    ["agent:research:main", "main", "allowed"],
    ["trip", "nobody at all", "not_found"],
    // Only people can use an ID prefix. A calling session can use neither an ID prefix nor a file name.
    ["trip", "01-gar", "not_found"],
    ["trip", "./trip.jsonl", "not_found"],
    // A session in the trash, and another user's session.
    ["trip", "old-trip", "not_found"],
    ["trip", "hers", "not_found"],
    ["boxed", "nobody at all", "sandbox_restricted"],
    ["boxed", "trip", "sandbox_restricted"],
    ["boxed", "boxed", "allowed"],
  ])("%s asks for %s: %s", async (asker, target, expected) => {
    const told = await payload(asker, target, "--action", "history");
    expect({ target: told.target, answers: answers(told) }).toEqual({ target, answers: [expected] });
    expect(told.asker.sandboxed).toBe(asker === "boxed");
  });

  test("--user and --agent select the asking session", async () => {
    const hers = await payload("trip", "hers", "--user", "alice");
    expect(hers.asker).toMatchObject({ userId: "alice", sessionId: "trip" });
    expect(answers(hers)).toEqual(Array(4).fill("allowed"));
    expect(answers(await payload("trip", "cron:daily", "--user", "alice"))).toEqual(
      Array(4).fill("not_found"),
    );
    const lab = await payload("main", "agent:main:main", "--agent", "research", "--action", "send");
    expect(lab.asker.key).toBe("agent:research:main");
    expect(answers(lab)).toEqual(["tree_visibility_restricted"]);
  });

  test.each([
    ["{tools: {sessions: {visibility: {send: agent}}}}", "trip", "cron:daily", ["send"]],
    ["{tools: {sessions: {visibility: all}}}", "trip", "agent:research:main", []],
    [
      "{tools: {sessions: {visibility: all}, agentToAgent: {enabled: true, allow: ['main -> research']}}}",
      "trip",
      "agent:research:main",
      ["list", "history", "send", "status"],
    ],
    [
      "{tools: {sessions: {visibility: all}}, agents: {main: {visibility: {list: self}}}}",
      "01-food",
      "trip",
      ["history", "send", "status"],
    ],
    ["{tools: {sessions: {visibility: all}}, agents: {main: {sandboxed: true}}}", "trip", "main", []],
    // The agent research does not exist here.
    [
      "{tools: {sessions: {visibility: all}, agentToAgent: {enabled: true}}, defaults: {sandboxed: true}}",
      "agent:research:main",
      "agent:main:main",
      [],
    ],
    [
      "{tools: {sessions: {visibility: all}, agentToAgent: {enabled: true}}}",
      "agent:research:main",
      "agent:main:main",
      ["list", "history", "send", "status"],
    ],
  ])("with the configuration %s, %s and %s", async (text, asker, target, allowed) => {
    const file = join(dir, "access.yaml");
    writeFileSync(file, text);
    const { explanations } = await payload(asker, target, "--config", file);
    const given = explanations.filter(({ decision }) => decision.allowed).map(({ action }) => action);
    expect(given).toEqual(allowed);
  });

  test("an unknown asker and an invalid action are refused", async () => {
    const missing = await skein(["nobody", "trip"]);
    expect(missing.exit).toBe(1);
    expect(missing.err).toContain("nobody");
    const wrong = await skein(["trip", "trip", "--action", "read"]);
    expect(wrong.exit).toBe(2);
    expect(wrong.err).toContain("list, history, send, status");
  });
});
