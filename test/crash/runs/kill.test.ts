import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Entry, Skein } from "../../../src/index.ts";
import { defineAgent } from "../../../src/index.ts";
import { KillPoints } from "../../support/kill-points.ts";
import { openScenario, prepare, theTurn } from "../../support/kill-scenario.ts";
import { supportProgram } from "../../support/programs.ts";
import { repetitions } from "../../support/repetitions.ts";
import { soon } from "../../support/soon.ts";

/** The maximum number of kill points, spread evenly over the turn. */
const mostPoints = repetitions.killPoints;
const child = supportProgram("kill-child");
const base = mkdtempSync(join(tmpdir(), "skein-kill-"));
const received: { readonly path: string; readonly key: string }[] = [];
const server = createServer((request, response) => {
  received.push({ path: request.url ?? "", key: String(request.headers["idempotency-key"]) });
  request.resume();
  request.on("end", () => response.end("{}"));
});
let origin = "";
let names: readonly string[] = [];

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const template = join(base, "template");
  mkdirSync(template);
  const skein = await openScenario(template, `${origin}/template`, new KillPoints(null));
  await prepare(skein);
  await skein.close({ graceMs: 0 });
  names = JSON.parse((await inChild("count")).said) as string[];
});

afterAll(() => {
  server.close();
  rmSync(base, { recursive: true, force: true });
});

/** Runs the turn in a separate process, on a copy of the initial state. */
async function inChild(
  name: string,
  point?: number,
): Promise<{ readonly said: string; readonly signal: unknown }> {
  const folder = join(base, name);
  cpSync(join(base, "template"), folder, { recursive: true });
  const args = [child, folder, `${origin}/${name}`, ...(point === undefined ? [] : [String(point)])];
  const running = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  running.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const [, signal] = await once(running, "close");
  return { said, signal };
}

/** Returns the external effects that have reached the disk. */
function happened(name: string): { readonly what: string; readonly detail: string }[] {
  const file = join(base, name, "events.log");
  const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  return lines
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { what: string; detail: string });
}

/** Returns the answers in a folder's logs, keyed by their distinguishing field. */
function answersIn(name: string): string[] {
  const folder = join(base, name, "skein/users/alice/agents/main/sessions");
  const text = ["work", "other"].map((id) => readFileSync(join(folder, `${id}.log.jsonl`), "utf8")).join("");
  const whole = text.slice(0, text.lastIndexOf("\n"));
  const marks = {
    calls: "Two things at once.",
    tell: "Now the other.",
    final: "All is done.",
    noted: "Noted.",
  };
  return Object.entries(marks).flatMap(([stage, mark]) => (whole.includes(mark) ? [stage] : []));
}

function pointsToDieAt(count: number): number[] {
  const all = Array.from({ length: count }, (_, index) => index);
  const step = Math.max(1, count / mostPoints);
  return [...new Set(all.map((index) => Math.floor(index * step)).filter((point) => point < count))];
}

async function entriesOf(skein: Skein, sessionId: string): Promise<readonly Entry[]> {
  const scope = { userId: "alice", agentId: "main" };
  const page = await skein.store.sessions.page(scope, sessionId, { along: "branch", limit: 1000 });
  return page?.entries ?? [];
}

/** Kills the process at a point, continues in another process, and checks the final state. */
async function killedAt(point: number): Promise<void> {
  const name = `point-${point}`;
  const { signal } = await inChild(name, point);
  // The turn might take one durable write fewer than when it was counted.
  if (signal === null) return;
  const before = happened(name);
  const answered = answersIn(name);
  // After this request, the server has read everything sent earlier, including the last output of the dead process.
  await fetch(`${origin}/behind`);
  const wasTold = keysOf(name).length > 0;
  const skein = await openScenario(join(base, name), `${origin}/${name}`, new KillPoints(null));
  try {
    const { reply, runId } = await theTurn(skein);
    expect(reply).toBe("All is done.");
    const run = await skein.runs.get(runId);
    expect(run).toMatchObject({ state: "ok" });
    expectOnce(await entriesOf(skein, "work"), await entriesOf(skein, "other"));
    expectOutside(name, before.length, answered);
    // A second delivery is possible only if the process died between making the first one and recording it.
    if (!wasTold) expect(keysOf(name)).toHaveLength(1);
    await expectBudget(skein, run?.root.rootId ?? "", name);
  } finally {
    await skein.close({ graceMs: 0 });
  }
  rmSync(join(base, name), { recursive: true, force: true });
}

/** Returns the deliveries to the channel by their idempotency keys. */
function keysOf(name: string): string[] {
  return received.filter(({ path }) => path === `/${name}`).map(({ key }) => key);
}

function expectOnce(work: readonly Entry[], other: readonly Entry[]): void {
  const messages = work.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
  const ids = work.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const users = messages.flatMap((message) =>
    message.role === "user" ? [JSON.stringify(message.content)] : [],
  );
  expect(users.filter((text) => text.includes("Do the work"))).toHaveLength(1);
  const calls = messages.flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []))
      : [],
  );
  const results = messages.flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : []));
  expect(calls).toEqual(["call-look", "call-act", "call-tell"]);
  // The first two calls are made at once, so either can be answered first.
  expect([...results.slice(0, 2).toSorted().toReversed(), ...results.slice(2)]).toEqual(calls);
  expect(messages.map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
    "toolResult",
    "toolResult",
    "assistant",
    "toolResult",
    "assistant",
  ]);
  expect(work.filter(({ type }) => type === "compaction")).toHaveLength(1);
  const told = other.filter((entry) => JSON.stringify(entry).includes("From the worker"));
  expect(told).toHaveLength(1);
  expect(other.filter((entry) => JSON.stringify(entry).includes("Noted."))).toHaveLength(1);
}

function expectOutside(name: string, known: number, answered: readonly string[]): void {
  const events = happened(name);
  expect(events.filter(({ what }) => what === "act").length).toBeLessThanOrEqual(1);
  const askedAgain = events.slice(known).flatMap(({ what, detail }) => (what === "asked" ? [detail] : []));
  for (const stage of answered) expect(askedAgain).not.toContain(stage);
  for (const stage of ["calls", "tell", "final", "noted"]) {
    const times = events.filter(({ what, detail }) => what === "asked" && detail === stage).length;
    expect(times, `asked for ${stage}`).toBeLessThanOrEqual(2);
  }
  const keys = keysOf(name);
  expect(keys.length).toBeGreaterThanOrEqual(1);
  expect(new Set(keys).size).toBe(1);
  expect(keys.length).toBeLessThanOrEqual(2);
}

/** Every answer is charged once. A lost answer was paid for too. */
async function expectBudget(skein: Skein, rootId: string, name: string): Promise<void> {
  const figures = await skein.budget(rootId);
  expect(figures?.runs).toBe(2);
  const askedFor = happened(name).flatMap(({ what, detail }) =>
    what === "asked" && detail !== "first" ? [detail] : [],
  );
  const costs: Record<string, number> = { calls: 3510 };
  const all = askedFor.reduce((sum, stage) => sum + (costs[stage] ?? 110), 0);
  const least = ["calls", "summary", "tell", "final", "noted"].reduce(
    (sum, stage) => sum + (costs[stage] ?? 110),
    0,
  );
  expect(figures?.tokens).toBeLessThanOrEqual(all);
  expect(figures?.tokens).toBeGreaterThanOrEqual(least);
}

describe("a turn that is killed", () => {
  test(`[KIL1] kill -9 at up to ${mostPoints} of the durable writes of a turn: it succeeds, and nothing is lost or done twice`, async () => {
    expect(names.length).toBeGreaterThan(100);
    const waiting = pointsToDieAt(names.length);
    const failed: string[] = [];
    const lane = async () => {
      for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
        const at = point;
        await killedAt(at).catch((error: unknown) => failed.push(`${at} ${names[at]}: ${String(error)}`));
      }
    };
    await Promise.all([lane(), lane()]);
    expect(failed).toEqual([]);
  }, 1_800_000);
});

/** The kill points around the write of the awaited reply, up to the ledger's next change. */
function pointsAroundReply(): number[] {
  const written = names.lastIndexOf("after append other.log.jsonl");
  const result = names.indexOf("before append work.log.jsonl", written);
  const confirmed = names.indexOf("after commit", result);
  return names.flatMap((_, point) => (point >= result - 2 && point <= confirmed + 2 ? [point] : []));
}

/**
 * Kills the process at a point and aborts the run before any process claims it. Counts the replies in the requester's
 * session.
 */
async function abortedAfter(point: number): Promise<{ readonly point: string; readonly replies: number }> {
  const name = `reply-${point}`;
  const folder = join(base, name);
  await inChild(name, point);
  // A process without the agent leaves the run in the queue.
  const elsewhere = await openScenario(folder, `${origin}/${name}`, new KillPoints(null), {
    agents: [defineAgent({ id: "elsewhere", model: "test/model" })],
  });
  const [run] = (await elsewhere.runs.list()).filter(({ idempotencyKey }) => idempotencyKey === "the-turn");
  await elsewhere.runs.abort(run?.runId ?? "");
  // On a busy machine, this process's durable writes can differ from the counted ones, and the turn might have ended
  // before the point.
  await soon(async () => (await elsewhere.runs.get(run?.runId ?? ""))?.state).toMatch(/^(?:aborted|ok)$/);
  await elsewhere.close({ graceMs: 0 });
  const skein = await openScenario(folder, `${origin}/${name}`, new KillPoints(null));
  try {
    const open = async () => skein.runs.list({ states: ["queued", "running", "waiting", "sleeping"] });
    await soon(open).toEqual([]);
    const messages = (await entriesOf(skein, "work")).flatMap((entry) =>
      entry.type === "message" ? [entry.message] : [],
    );
    const replies = messages.filter(
      (message) => message.role !== "assistant" && JSON.stringify(message).includes("Noted."),
    );
    return { point: `${point} ${names[point]}`, replies: replies.length };
  } finally {
    await skein.close({ graceMs: 0 });
  }
}

test("[TLK7] an awaited reply exists once if the waiting run dies around its write and is aborted", async () => {
  const points = pointsAroundReply();
  expect(points.length).toBeGreaterThan(3);
  const counted = [];
  for (const point of points) counted.push(await abortedAfter(point));
  expect(counted).toEqual(counted.map(({ point }) => ({ point, replies: 1 })));
}, 600_000);
