import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createAcpRuntime } from "../../src/acp/client/acp-runtime.ts";
import type { Turn, TurnModel } from "../../src/agents/contract.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { SkeinError } from "../../src/index.ts";
import { acpLink } from "../../src/sessions/acp-link.ts";
import type { AgentScript } from "../support/acp/script.ts";
import { scriptedAgent } from "../support/acp/script.ts";
import { fileBoundary } from "../support/file-boundary.ts";
import { openCall, openTurn, scope } from "../support/turn.ts";

/**
 * A run that another process previously owned, on the real runtime and store, with the agent as a real child process.
 */

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function opened(script: AgentScript) {
  const cwd = await realpath(await mkdtemp(join(tmpdir(), "skein-acp-")));
  closing.push(() => rm(cwd, { recursive: true, force: true }));
  const agent = scriptedAgent({ ...script, sessionsFile: join(cwd, "sessions.json") });
  const runtime = createAcpRuntime({
    agent: (name) => ({ name, ...agent, env: {}, permissions: "allow" }),
    files: fileBoundary(),
    settings: { maxConcurrentSessions: 8, idleMs: 60_000, startTimeoutMs: 120_000 },
    env: process.env,
    clock: systemClock,
    report: (error) => expect.unreachable(String(error)),
  });
  closing.push(() => runtime.close());
  // No model is called, because the agent has its own.
  const place = await openTurn({ model: {} as TurnModel });
  const { store } = place;
  await store.sessions.patch(scope, "s", { acp: {}, spawnMode: "run" });
  const turnOf = async (how: "new" | "recovered", more: Partial<Turn> = {}): Promise<Turn> => {
    const session = await store.sessions.get(scope, "s");
    if (session === null) throw new Error("the session is gone");
    const acp = acpLink({ store }, session, { how });
    if (acp === null) throw new Error("no link");
    return { ...place.turn, about: { ...place.turn.about, cwd }, system: null, acp, ...more };
  };
  return { ...place, runtime, turnOf };
}

describe("a run whose owner was lost", () => {
  test("[ARU3] its open calls are closed, and the agent is asked to check what was done", async () => {
    const { runtime, turnOf, say, lines } = await opened({ turns: [[{ say: "One." }], [{ echo: true }]] });
    await say({ role: "user", content: "Go" });
    await runtime.run(await turnOf("new"));
    await say({ role: "user", content: "Go on" });
    const call = openCall("c1", "execute", { command: "make" });
    const usage = {
      input: 0,
      output: 0,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 0,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    };
    const about = { api: "acp", provider: "acp", model: "main", usage, stopReason: "toolUse" } as const;
    await say({ role: "assistant", content: [call], ...about });
    const end = await runtime.run(await turnOf("recovered", { open: { entryId: "e", calls: [call] } }));
    expect(end).toMatchObject({
      kind: "answered",
      reply: expect.stringMatching(/^\[\[Skein\] Your process was lost/),
    });
    expect((await lines()).filter((line) => line !== "custom").slice(-3)).toEqual([
      'assistant toolUse: → execute {"command":"make"}',
      expect.stringMatching(/^result execute failed: \[skein\] This call has no result/),
      expect.stringMatching(/^assistant stop: \[\[Skein\]/),
    ]);
  });

  test("[ARU3] messages that the agent may not have seen are sent again after that", async () => {
    const { runtime, turnOf, say } = await opened({ turns: [[{ say: "One." }], [{ echo: true }]] });
    await say({ role: "user", content: "Go" });
    await runtime.run(await turnOf("new"));
    await say({ role: "user", content: "Go on" });
    const end = await runtime.run(await turnOf("recovered"));
    expect(end).toMatchObject({
      reply: expect.stringMatching(/^\[\[Skein\] Your process.*continue\.\n\n\]\[Go on\]$/s),
    });
  });

  test("[ARU3] a run lost before its agent had a session starts like any other", async () => {
    const { runtime, turnOf, say } = await opened({ turns: [[{ echo: true }]] });
    await say({ role: "user", content: "Go" });
    expect(await runtime.run(await turnOf("recovered"))).toMatchObject({ reply: "[Go]" });
  });

  test("[ARU3] an agent that can neither load nor resume cannot continue", async () => {
    const { runtime, turnOf, say } = await opened({ can: { load: false, resume: false } });
    await say({ role: "user", content: "Go" });
    await runtime.run(await turnOf("new"));
    await say({ role: "user", content: "Go on" });
    const error = await runtime.run(await turnOf("recovered")).catch((thrown: SkeinError) => thrown);
    expect(error).toMatchObject({ code: "acp_unsupported" });
  });
});

describe("the prompt of an agent", () => {
  test("[ARU12] contains everything since its last answer, including Skein's notes", async () => {
    const { runtime, turnOf, say, store } = await opened({ turns: [[{ say: "One." }], [{ echo: true }]] });
    await say({ role: "user", content: "Go" });
    await runtime.run(await turnOf("new"));
    await say({ role: "user", content: "First" });
    const note = {
      type: "custom_message",
      customType: "skein.wake",
      content: "/A child has ended.",
      display: true,
    } as const;
    await store.sessions.append(scope, "s", [{ draft: note }]);
    await say({ role: "user", content: "Second" });
    const end = await runtime.run(await turnOf("new"));
    expect(end).toMatchObject({ reply: "[First\n\n][Message:\n/A child has ended.\n\n][Second]" });
  });
});
