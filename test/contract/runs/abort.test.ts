import { describe, expect, test } from "vitest";
import { defineTool, HookRegistry, RunError } from "../../../src/index.ts";
import { brief, gateOf, messagesOf, pairingProblems } from "../../support/run-skein.ts";
import type { RunSkeinInside } from "../../support/run-skein-inside.ts";
import { openRunsInside } from "../../support/run-skein-inside.ts";
import { soon } from "../../support/soon.ts";

const where = { sessionId: "s" };

/** Checks that a run was aborted and that the next one answers immediately. */
async function expectAborted(
  open: RunSkeinInside,
  turn: { readonly runId: string; readonly result: Promise<unknown> },
) {
  const error = await turn.result.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RunError);
  expect(error).toMatchObject({ code: "aborted", state: "aborted" });
  expect((await open.skein.runs.get(turn.runId))?.state).toBe("aborted");
  const { reply } = await open.skein.session(where).send("And now?").result;
  expect(reply).toBe("Here.");
  expect(pairingProblems(await messagesOf(open.skein, "s"))).toEqual([]);
  expect(open.reports).toEqual([]);
  await open.skein.close({ graceMs: 0 });
}

describe("abort", () => {
  test("[LIB11] of a queued run: it never starts", async () => {
    const gate = gateOf();
    const hold = defineTool({ name: "hold", description: "Holds.", execute: () => gate.wait() });
    const script = [{ calls: [{ name: "hold" }] }, { text: "Done." }, { text: "Here." }];
    const open = await openRunsInside({ script, tools: [hold] });
    const first = open.skein.session(where).send("Hold");
    await gate.reached;
    const second = open.skein.session(where).send("Wait", { queueMode: "followup" });
    await second.abort();
    gate.pass();
    expect((await first.result).reply).toBe("Done.");
    await expectAborted(open, second);
  });

  test("[LIB11] during an answer: the text so far is kept", async () => {
    const open = await openRunsInside({
      script: [{ text: "Once upon a time", stall: true }, { text: "Here." }],
    });
    const turn = open.skein.session(where).send("A story");
    for await (const event of turn) if (event.type === "text" && event.delta.includes("time")) break;
    await turn.abort();
    await turn.result.catch(() => undefined);
    const [, answer] = await messagesOf(open.skein, "s");
    expect(answer).toMatchObject({
      role: "assistant",
      stopReason: "aborted",
      content: [{ text: "Once upon a time" }],
    });
    await expectAborted(open, turn);
  });

  test("[LIB11] in a tool: its call gets a result that says so", async () => {
    const gate = gateOf();
    const hold = defineTool({ name: "hold", description: "Holds.", execute: () => gate.wait() });
    const open = await openRunsInside({
      script: [{ calls: [{ name: "hold" }] }, { text: "Here." }],
      tools: [hold],
    });
    const turn = open.skein.session(where).send("Hold");
    await gate.reached;
    await turn.abort();
    await expectAborted(open, turn);
    gate.pass();
  });

  test("[LIB11] while it waits for an approval", async () => {
    const ask = defineTool({ name: "ask", description: "Asks.", approval: true, execute: () => "done" });
    const open = await openRunsInside({
      script: [{ calls: [{ name: "ask" }] }, { text: "Here." }],
      tools: [ask],
    });
    const turn = open.skein.session(where).send("Ask");
    for await (const event of turn) if (event.type === "approval") break;
    await turn.abort();
    await turn.result.catch(() => undefined);
    expect(await open.skein.approvals.list()).toEqual([]);
    await expectAborted(open, turn);
  });

  test("[LIB11] at the last moment: the run does not succeed afterwards, nothing is delivered, and hooks see it", async () => {
    const hooks = new HookRegistry();
    const told: string[] = [];
    const channel = {
      id: "c",
      deliver: async ({ text }: { readonly text: string }) => ({ told: told.push(text) }),
    };
    const script = [{ text: "Too late." }, { text: "Here." }];
    const open = await openRunsInside({ script, hooks, channels: [channel] });
    const turn = open.skein.session(where).send("Say it", { deliverTo: { channel: "c" } });
    let isFirst = true;
    hooks.on("llm_output", async () => {
      if (isFirst) await open.inside.runs.abort(turn.runId);
      isFirst = false;
    });
    const ends: unknown[] = [];
    hooks.on("agent_end", ({ outcome }) => void ends.push(outcome) as undefined);
    await turn.result.catch(() => undefined);
    expect(await open.skein.outbox()).toEqual([]);
    await soon(() => ends).toEqual(["aborted"]);
    await expectAborted(open, turn);
    expect(told).toEqual([]);
  });

  test("[LIB11] while it sleeps", async () => {
    const gate = gateOf();
    const hold = defineTool({ name: "hold", description: "Holds.", execute: () => gate.wait() });
    const script = (request: { readonly prompt: unknown }) =>
      JSON.stringify(request.prompt).includes("Hold") ? { calls: [{ name: "hold" }] } : { text: "Here." };
    const open = await openRunsInside({ script, tools: [hold] });
    const other = open.skein.session({ sessionId: "other" }).send("Hold");
    await gate.reached;
    const { runs, store } = open.inside;
    const session = await store.sessions.create(
      { agentId: "main" },
      { key: "agent:main:session:s", sessionId: "s", cwd: "/" },
    );
    const { uid, userId, agentId, key, sessionId } = session;
    const slept = await asleep(open, { uid, userId, agentId, key, sessionId }, other.runId);
    expect((await runs.get(slept))?.state).toBe("sleeping");
    await open.skein.runs.abort(slept);
    gate.pass();
    const result = Promise.reject(
      new RunError({ runId: slept, usage: {} }, { state: "aborted", code: "aborted" }),
    );
    await expectAborted(open, { runId: slept, result });
  });
});

/** A run that has yielded until another one ends. */
async function asleep(
  { inside }: RunSkeinInside,
  session: Parameters<RunSkeinInside["inside"]["runs"]["accept"]>[0]["session"],
  until: string,
): Promise<string> {
  const { runs } = inside;
  // Accepted and claimed manually before the worker can claim it.
  const accepted = runs.accept({ session, kind: "user", message: { role: "user", content: "Sleep" } });
  const { run } = await accepted;
  const claim = await runs.claim("by hand");
  if (claim?.run.runId !== run.runId) throw new Error("the worker was quicker");
  await runs.sleep(
    { runId: run.runId, fence: claim.run.fence },
    { waitFor: [until], wakeAt: Date.now() + 60_000 },
  );
  return run.runId;
}

describe("input during a turn", () => {
  test.each(["steer", "followup", "interrupt"] as const)(
    "[ANS3] %s, at every moment of a turn: calls and results stay together, and everything is answered",
    async (queueMode) => {
      for (let moment = 0; moment < 12; moment++) {
        let tick = 0;
        const late: Promise<unknown>[] = [];
        const at = async (here: number) => {
          if (here !== moment || late.length > 0) return;
          late.push(open.skein.session(where).send("And this", { queueMode }).result);
          await new Promise((resolve) => setImmediate(resolve));
        };
        const work = defineTool({
          name: "work",
          description: "Works.",
          execute: async () => {
            await at(tick++);
            await new Promise((resolve) => setImmediate(resolve));
            await at(tick++);
            return "worked";
          },
        });
        const open = await openRunsInside({ script: decide, tools: [work] });
        const first = open.skein.session(where).send("Work").result;
        await first.catch((error: unknown) => expect(queueMode, String(error)).toBe("interrupt"));
        if (late.length === 0) late.push(open.skein.session(where).send("And this", { queueMode }).result);
        await Promise.all(late);
        const messages = await messagesOf(open.skein, "s");
        expect(pairingProblems(messages), messages.map(brief).join("\n")).toEqual([]);
        const said = messages.map(brief);
        expect(said.filter((text) => text === "user: And this")).toHaveLength(1);
        expect(said.lastIndexOf("assistant: All done.")).toBeGreaterThan(said.indexOf("user: And this"));
        expect(open.reports).toEqual([]);
        await open.skein.close({ graceMs: 0 });
      }
    },
  );
});

/** Two calls, then two more, then the end. */
function decide({ prompt }: { readonly prompt: readonly { readonly role: string }[] }) {
  const answers = prompt.filter(({ role }) => role === "assistant").length;
  if (answers % 3 < 2) return { calls: [{ name: "work" }, { name: "work" }] };
  return { text: "All done." };
}
