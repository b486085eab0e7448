import { expect } from "vitest";
import type { ModelStep, ScriptedModel } from "../../src/entry-testing.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { Channel, Skein, SkeinOptions } from "../../src/index.ts";
import { defineTool } from "../../src/index.ts";
import { mountOverHttp } from "./mounted-gateway.ts";
import { brief, gateOf, laterClock, messagesOf } from "./run-skein.ts";

/** What every back end promises about runs, messages to channels, tokens and events. All of it is seen from outside. */

export interface BackendProcess {
  readonly skein: Skein;
  /** Contains the token of its gateway. */
  readonly dir: string;
}

interface ProcessOptions extends Pick<SkeinOptions, "workers" | "clock" | "channels"> {
  readonly model?: ScriptedModel;
  readonly tools?: readonly ReturnType<typeof defineTool>[];
}

/** Starts another process on the data of the case. */
export type StartProcess = (options?: ProcessOptions) => Promise<BackendProcess>;

export interface BackendCase {
  readonly name: string;
  /** If set, the case needs several processes, or processes that receive each other's events. */
  readonly needs?: "processes" | "events";
  check(start: StartProcess): Promise<void>;
}

const yes = (): ModelStep => ({ text: "Yes." });

/** Accepts messages without executing them. */
async function acceptAll(start: StartProcess, texts: readonly string[]) {
  const { skein } = await start({ workers: false });
  const runIds: string[] = [];
  for (const text of texts) {
    const { runId } = await skein.session({ sessionId: "s" }).accept(text, { queueMode: "followup" });
    expect(await skein.runs.get(runId)).toMatchObject({ state: "queued" });
    runIds.push(runId);
  }
  return { skein, runIds };
}

export const backendCases: readonly BackendCase[] = [
  {
    name: "accepted input is executed once, by one of the processes",
    needs: "processes",
    check: async (start) => {
      const { skein, runIds } = await acceptAll(start, ["Hello"]);
      const model = scriptedModel(yes);
      await Promise.all([start({ model }), start({ model })]);
      expect(await skein.ended(runIds[0] ?? "")).toMatchObject({ outcome: { reply: "Yes." } });
      expect(model.requests).toHaveLength(1);
    },
  },
  {
    name: "the messages of a session are answered in the order of their acceptance",
    needs: "processes",
    check: async (start) => {
      const texts = ["one", "two", "three"];
      const { skein, runIds } = await acceptAll(start, texts);
      await start({ model: scriptedModel(yes) });
      for (const runId of runIds) await skein.ended(runId);
      const said = (await messagesOf(skein, "s")).map(brief);
      expect(said).toEqual(texts.flatMap((text) => [`user: ${text}`, "assistant: Yes."]));
    },
  },
  {
    name: "a repeated idempotency key finds the run, and is refused for another message",
    check: async (start) => {
      const { skein } = await start({ model: scriptedModel(yes) });
      const session = skein.session({ sessionId: "s" });
      const once = { idempotencyKey: "once" };
      const { runId } = await session.accept("Hello", once);
      expect(await session.accept("Hello", once)).toMatchObject({ runId });
      await expect(session.accept("Bye", once)).rejects.toMatchObject({ code: "idempotency_conflict" });
      await skein.ended(runId);
      expect(await skein.runs.list()).toHaveLength(1);
    },
  },
  {
    name: "another process continues a run after its lease, and the first one writes nothing more",
    needs: "processes",
    check: async (start) => {
      const gate = gateOf();
      const hold = defineTool({ name: "hold", description: "Waits.", execute: () => gate.wait() });
      const first = scriptedModel([{ calls: [{ name: "hold" }] }, { text: "Too late." }]);
      const { skein } = await start({ model: first, tools: [hold] });
      const { runId } = await skein.session({ sessionId: "s" }).accept("Hello");
      await gate.reached;
      const model = scriptedModel([{ text: "In time." }]);
      const other = await start({ model, tools: [hold], clock: laterClock });
      await other.skein.ended(runId);
      gate.pass();
      await skein.close();
      expect((await messagesOf(other.skein, "s")).map(brief)).toEqual([
        "user: Hello",
        "assistant: →hold",
        expect.stringContaining("toolResult: The run was interrupted during this call"),
        "assistant: In time.",
      ]);
    },
  },
  {
    name: "a run that waits for an approval continues once, after the answer of any process",
    needs: "processes",
    check: async (start) => {
      let paid = 0;
      const pay = defineTool({
        name: "pay",
        description: "Pays.",
        approval: true,
        execute: () => `${++paid}`,
      });
      const model = scriptedModel([{ calls: [{ name: "pay" }] }, { text: "Paid." }]);
      const { skein } = await start({ model, tools: [pay] });
      const { runId } = await skein.session({ sessionId: "s" }).accept("Pay");
      const front = await start({ workers: false });
      await expect.poll(() => front.skein.approvals.list()).toHaveLength(1);
      const [asked] = await front.skein.approvals.list();
      await front.skein.approvals.resolve(asked?.approvalId ?? "", "approved");
      expect(await skein.approvals.list({ open: false })).toMatchObject([{ answer: "approved" }]);
      expect(await skein.ended(runId)).toMatchObject({ outcome: { reply: "Paid." } });
      expect(paid).toBe(1);
    },
  },
  {
    name: "a message to a channel is delivered once",
    needs: "processes",
    check: async (start) => {
      const sent: string[] = [];
      const desk: Channel = { id: "desk", deliver: async ({ text }) => ({ at: sent.push(text) }) };
      const options = { model: scriptedModel(yes), channels: [desk] };
      const [{ skein }] = await Promise.all([start(options), start(options)]);
      const deliverTo = { channel: "desk", to: "ann" };
      await skein.session({ sessionId: "s" }).send("Hello", { deliverTo }).result;
      const isDelivered = async () => (await skein.outbox())[0]?.state === "delivered";
      await expect.poll(async () => sent.length > 1 || (await isDelivered())).toBe(true);
      expect(sent).toEqual(["Yes."]);
    },
  },
  {
    name: "a token is accepted by every process until one of them revokes it",
    needs: "processes",
    check: async (start) => {
      const processes = [await start(), await start()];
      const [here, there] = await Promise.all(processes.map(({ skein, dir }) => mountOverHttp(skein, dir)));
      if (here === undefined || there === undefined) throw new Error("no gateway");
      const { token, tokenId } = await here.call("tokens.create", { scopes: ["read"] });
      const statusOf = async (url: string) => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
        return (await fetch(`${url}/rpc/agents.list`, { method: "POST", headers, body: "{}" })).status;
      };
      expect([await statusOf(here.url), await statusOf(there.url)]).toEqual([200, 200]);
      await here.call("tokens.revoke", { tokenId });
      expect([await statusOf(here.url), await statusOf(there.url)]).toEqual([401, 401]);
      await Promise.all([here.close(), there.close()]);
    },
  },
  {
    name: "every process receives the events of a run once and in order",
    needs: "events",
    check: async (start) => {
      const { skein } = await start({ model: scriptedModel(yes) });
      const other = await start({ workers: false });
      const seen: string[] = [];
      other.skein.subscribe(({ type }) => void (type.startsWith("run.") && seen.push(type)));
      await skein.session({ sessionId: "s" }).send("Hello").result;
      await expect.poll(() => seen).toContain("run.ended");
      const expected = ["run.queued", "run.started", "run.ended"];
      expect(seen.filter((type) => expected.includes(type))).toEqual(expected);
    },
  },
];
