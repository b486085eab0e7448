import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { pairingProblems } from "../support/run-skein.ts";
import { closeAll } from "../support/skein.ts";
import { soon } from "../support/soon.ts";
import { realAgents } from "./agents.ts";
import type { Ground } from "./ground.ts";
import { closeModels, groundOf, killAll, processesOf } from "./ground.ts";
import { says, tasks } from "./model.ts";

// Only `npm run real-agents` installs the agents. Otherwise, these tests are skipped with a reason.
afterEach(async () => {
  await closeAll();
  await closeModels();
});

describe.each(realAgents)("$name", { timeout: 240_000 }, (agent) => {
  test("asks a person, does its work, and reports it", async (context) => {
    const ground = await groundOf(agent, context);
    const { home, cwd, model, spawn, approval, ended } = ground;
    const spawned = await spawn(tasks.write);
    expect(spawned).toMatchObject({ status: "ok", agentSessionId: expect.stringMatching(/./) });
    const { skein } = ground.family;
    const { approvalId } = await approval();
    expect(existsSync(join(cwd, "note.txt"))).toBe(false);
    await skein.approvals.resolve(approvalId, "approved");
    expect(await ended(spawned.runId)).toMatchObject({ state: "ok", outcome: { reply: says.done } });
    expect(readFileSync(join(cwd, "note.txt"), "utf8")).toBe("a line\n");
    await worked(ground, spawned, false);
    await soon(() => processesOf(home)).toEqual([]);
    expect(model.twin.requests.flatMap(({ refusal }) => refusal?.rule ?? [])).toEqual([]);
  });

  test("continues an earlier session", async (context) => {
    if (agent.cannotResume !== null) context.skip(agent.cannotResume);
    const { model, spawn, ended } = await groundOf(agent, context);
    const first = await spawn(tasks.hello);
    await ended(first.runId);
    const again = await spawn(tasks.again, { resumeSessionId: first.agentSessionId });
    expect(await ended(again.runId)).toMatchObject({ state: "ok", outcome: { reply: says.hello } });
    const asked = model.twin.requests.map(({ body }) => JSON.stringify(body));
    expect(asked.some((body) => body.includes(tasks.hello) && body.includes(tasks.again))).toBe(true);
    expect(model.twin.requests.flatMap(({ refusal }) => refusal?.rule ?? [])).toEqual([]);
  });

  test("does not do what a person denies", async (context) => {
    const ground = await groundOf(agent, context);
    const { cwd, spawn, approval, ended } = ground;
    const spawned = await spawn(tasks.write);
    const { approvalId } = await approval();
    await ground.family.skein.approvals.resolve(approvalId, "denied");
    const { outcome } = await ended(spawned.runId);
    // Codex ends its turn after a denial, but the others reply.
    if (outcome?.state !== "ok") expect(outcome?.error).toContain("was denied: a person rejected it");
    expect(existsSync(join(cwd, "note.txt"))).toBe(false);
    await worked(ground, spawned, true);
  });

  test("stops when its run is aborted, and leaves no process", async (context) => {
    const { home, model, spawn, ended, family } = await groundOf(agent, context);
    const spawned = await spawn(tasks.wait);
    await model.isWaiting;
    await family.skein.runs.abort(String(spawned.runId));
    expect(await ended(spawned.runId)).toMatchObject({ state: "aborted" });
    await soon(() => processesOf(home)).toEqual([]);
  });

  test("is killed in the middle of a turn, and continues its session", async (context) => {
    if (agent.cannotResume !== null) context.skip(agent.cannotResume);
    const { home, model, spawn, ended, family } = await groundOf(agent, context);
    // Some agents do not save a session until its first answer.
    const { runId, childSessionKey: sessionKey } = await spawn(tasks.hello, { mode: "session" });
    expect(await ended(runId)).toMatchObject({ state: "ok" });
    const killed = await family.call("sessions_send", { sessionKey, message: tasks.wait });
    await model.isWaiting;
    killAll(home);
    expect(await ended(killed.runId)).toMatchObject({ state: "error", outcome: { code: "acp_failed" } });
    const wait = { sessionKey, message: tasks.again, timeoutSeconds: 100 };
    expect(await family.call("sessions_send", wait)).toMatchObject({ status: "ok", reply: says.hello });
    const asked = model.twin.requests.map(({ body }) => JSON.stringify(body));
    expect(asked.some((body) => body.includes(tasks.hello) && body.includes(tasks.again))).toBe(true);
  });

  test("is stopped while it waits for permission", async (context) => {
    const ground = await groundOf(agent, context);
    const { home, cwd, spawn, approval, ended, family } = ground;
    const spawned = await spawn(tasks.write);
    await approval();
    await family.skein.runs.abort(String(spawned.runId));
    expect(await ended(spawned.runId)).toMatchObject({ state: "aborted" });
    expect(await family.skein.approvals.list()).toEqual([]);
    await soon(() => processesOf(home)).toEqual([]);
    expect(existsSync(join(cwd, "note.txt"))).toBe(false);
    await worked(ground, spawned, true);
  });

  test("receives the notes about its session, and uses the requested model", async (context) => {
    const { model, spawn, ended, family } = await groundOf(agent, context);
    const chosen = agent.model === null ? {} : { model: agent.model };
    const { runId, childSessionKey: sessionKey } = await spawn(tasks.hello, { ...chosen, mode: "session" });
    expect(await ended(runId)).toMatchObject({ state: "ok", outcome: { reply: says.hello } });
    const more = { sessionKey, message: tasks.hello, timeoutSeconds: 100 };
    expect(await family.call("sessions_send", more)).toMatchObject({ status: "ok" });
    const asked = model.twin.requests.filter(({ body }) => JSON.stringify(body).includes(tasks.hello));
    expect(asked.some(({ body }) => JSON.stringify(body).includes("Agent-to-agent message context"))).toBe(
      true,
    );
    if (agent.model !== null) expect(asked.map(({ path }) => path).join()).toContain(agent.model);
  });
});

/** The agent's call is in the child's session, with its outcome. */
async function worked(
  { family }: Ground,
  { runId }: Readonly<Record<string, unknown>>,
  isError: boolean,
): Promise<void> {
  const { skein } = family;
  const session = (await skein.runs.get(String(runId)))?.session;
  const scope = { agentId: session?.agentId ?? "" };
  const branch = { along: "branch", limit: 1000 } as const;
  const page = await skein.store.sessions.page(scope, session?.sessionId ?? "", branch);
  const messages = (page?.entries ?? []).flatMap((entry) =>
    entry.type === "message" ? [entry.message] : [],
  );
  expect(messages.filter(({ role }) => role === "toolResult")).toMatchObject([{ isError }]);
  expect(pairingProblems(messages)).toEqual([]);
}
