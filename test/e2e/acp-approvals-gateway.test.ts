import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReceivedEvent, SkeinClient } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { AgentScript } from "../support/acp/script.ts";
import { scriptedAgent } from "../support/acp/script.ts";
import { run } from "../support/cli.ts";
import { isStillThere, signalTo } from "../support/proc.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

/** End to end: the command line, a gateway, an external agent process, and observers. */

const permission = { id: "c1", title: "Delete it", kind: "execute", rawInput: { command: "rm it" } } as const;
const asking = [[{ say: "Looking. " }, { permission }]];

let folder: TemporaryFolder;
let gateway: WholeGateway;
let events: ReceivedEvent[] = [];

beforeEach(async () => {
  folder = temporaryFolder("skein-acp-");
  events = [];
  gateway = await wholeGateway({
    folder,
    config: configOf({
      asks: { turns: asking },
      waits: { turns: [[{ say: "Here. " }, { wait: "cancel" }]] },
    }),
  });
});
afterEach(async () => {
  await gateway.close();
  const left = alive();
  for (const pid of left) signalTo(pid, "SIGKILL");
  folder.remove();
  expect(left).toEqual([]);
});

function configOf(scripts: Readonly<Record<string, AgentScript>>): string {
  const pidFile = join(folder.path, "pids");
  const agents = Object.entries(scripts).map(([name, script]) => {
    const sessionsFile = join(folder.path, `${name}.json`);
    return [name, scriptedAgent({ pidFile, sessionsFile, ...script })];
  });
  return `acp: ${JSON.stringify({ permissions: "ask", agents: Object.fromEntries(agents) })}\n`;
}

function started(): number[] {
  try {
    return readFileSync(join(folder.path, "pids"), "utf8").split("\n").filter(Boolean).map(Number);
  } catch {
    return []; // no process was started
  }
}

/** Agents have the gateway's HOME. */
const alive = () => started().filter((pid) => isStillThere(pid, `HOME=${folder.path}\0`));

const tokenOf = (label: string, userId: string) =>
  gateway.token({ label, userId, scopes: ["read", "write", "tools"] });
const cli = (token: string, ...args: readonly string[]) =>
  run(args, { cwd: folder.path, env: { SKEIN_DIR: gateway.root, SKEIN_TOKEN: token } });
const spawn = (token: string, agent: string, ...more: readonly string[]) =>
  cli(token, "spawn", "do it", "--runtime", "acp", "--under", agent, "--json", ...more);

/** A client that receives every event from now on. */
async function listening(token: string): Promise<SkeinClient> {
  const client = await gateway.client(token);
  const stream = client.events({});
  await stream.ready;
  void (async () => {
    for await (const each of stream) events.push(each);
  })();
  return client;
}

const heard = (name: ReceivedEvent["event"]) =>
  events.flatMap((each) => (each.event === name && each.event !== "gap" ? [each.payload] : [])) as Record<
    string,
    unknown
  >[];

async function asked(): Promise<string> {
  await soon(() => heard("approval.requested").length).toBe(1);
  const [{ approvalId, sessionKey } = {}] = heard("approval.requested");
  expect(sessionKey).toMatch(/^agent:asks:acp:/);
  return String(approvalId);
}

describe("an ACP agent behind a gateway", () => {
  test("[AJN9] its requests are answered by its user, with any token, and by no one else", async () => {
    const [ann, other, bob] = [
      await tokenOf("ann", "ann"),
      await tokenOf("ann's other", "ann"),
      await tokenOf("bob", "bob"),
    ];
    const hers = await listening(other);
    expect((await hers.call("agents.list", {})).acp).toContain("asks");
    const spawned = spawn(ann, "asks");
    const approvalId = await asked();
    const his = await gateway.client(bob);
    expect(await his.call("approvals.list", {})).toMatchObject({ count: 0 });
    const answer = "approved" as const;
    await expect(his.call("approvals.resolve", { approvalId, answer })).rejects.toMatchObject({
      code: "not_found",
    });
    expect(await hers.call("approvals.list", {})).toMatchObject({ approvals: [{ approvalId }] });
    expect(await hers.call("approvals.resolve", { approvalId, answer })).toMatchObject({ answer });
    const { exit, out } = await spawned;
    expect(JSON.parse(out)).toMatchObject({ status: "ok", outcome: "ok", result: "(yes)" });
    expect(exit).toBe(0);
    const [{ runId } = {}] = heard("approval.requested");
    const ofRun = (name: ReceivedEvent["event"]) => heard(name).filter((each) => each.runId === runId);
    // The command line's request was answered over another connection.
    await soon(() => ofRun("run.ended")).toMatchObject([{ state: "ok" }]);
    expect(JSON.stringify(ofRun("run.delta"))).toContain("Looking.");
    expect(ofRun("run.tool").map(({ phase }) => phase)).toEqual(["call", "result"]);
    expect(new Set(ofRun("run.delta").map(({ sessionKey }) => sessionKey))).toEqual(
      new Set(heard("approval.requested").map(({ sessionKey }) => sessionKey)),
    );
  });

  test("[AJN9] skein runs approve and deny answer it over the gateway, and the first answer counts", async () => {
    const ann = await tokenOf("ann", "ann");
    await listening(ann);
    const spawned = spawn(ann, "asks");
    const approvalId = await asked();
    expect(await cli(ann, "runs", "deny", approvalId)).toMatchObject({ exit: 0 });
    expect(JSON.parse((await spawned).out)).toMatchObject({ result: "(no)" });
    expect((await cli(ann, "runs", "approve", approvalId)).err).toMatch(/was already denied/);
  });

  test("[ARU9] runs abort and subagents kill end it with its process, and it is announced once", async () => {
    const ann = await tokenOf("ann", "ann");
    const client = await listening(ann);
    for (const how of ["abort", "kill"] as const) {
      const out = (await spawn(ann, "waits", "--no-wait", "--label", how)).out;
      const { runId } = JSON.parse(out) as { runId: string };
      await soon(() => JSON.stringify(heard("run.delta").filter((each) => each.runId === runId))).toContain(
        "Here.",
      );
      const kill = ["tool", "subagents", '{"action":"kill","target":"kill"}', "--session", "main"];
      const ended = await cli(ann, ...(how === "abort" ? ["runs", "abort", runId] : kill));
      expect(ended).toMatchObject({ exit: 0, err: "" });
      await soon(() => heard("run.ended").filter((each) => each.runId === runId)).toMatchObject([
        { state: "aborted" },
      ]);
      await soon(alive).toEqual([]);
    }
    await soon(async () => {
      const { runs } = await client.call("runs.list", { limit: 100 });
      return runs.filter(({ kind, state }) => kind === "announce" && state === "ok").length;
    }).toBe(2);
  });
});

describe("a configuration reloaded while an ACP agent works", () => {
  test("[AJN11] the next gateway continues the turn and asks again, and a new agent can be spawned", async () => {
    const ann = await tokenOf("ann", "ann");
    const client = await listening(ann);
    const spawned = spawn(ann, "asks");
    const approvalId = await asked();
    const file = join(folder.path, "skein.yaml");
    const before = readFileSync(file, "utf8");
    writeFileSync(
      file,
      before.replace(
        /^acp: .*\n/m,
        configOf({ asks: { turns: asking }, fresh: { turns: [[{ say: "New." }]] } }),
      ),
    );
    expect(await gateway.rpc("config.reload")).toMatchObject({
      status: 200,
      body: { commands: ["acp.agents.fresh"] },
    });
    expect(JSON.parse((await spawn(ann, "fresh")).out)).toMatchObject({ outcome: "ok", result: "New." });
    expect((await spawn(ann, "waits")).exit).toBe(1);
    // The process that requested approval no longer exists. An answer would not reach the process that continues the
    // run.
    await soon(() => heard("approval.requested").length).toBe(2);
    const { approvals } = await client.call("approvals.list", { open: true });
    const [again] = approvals;
    expect(approvals).toHaveLength(1);
    expect(again?.approvalId).not.toBe(approvalId);
    await client.call("approvals.resolve", { approvalId: String(again?.approvalId), answer: "approved" });
    expect(JSON.parse((await spawned).out)).toMatchObject({ outcome: "ok", result: "(yes)" });
    await soon(alive).toEqual([]);
  });
});
