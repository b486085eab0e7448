import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { MethodName, Params, Result } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run as runCommand } from "../support/cli.ts";
import { signatureOf } from "../support/webhook-signature.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

/**
 * A folder with five users. The unnamed user has a session. Ann has sessions, a child, runs and two tokens. Bob has a
 * run that is waiting for approval. A peer on the channel `desk` has a message in the outbox. Cleo has only a token.
 */

const secret = "a secret of sixteen bytes and more";
const peer = "desk:17";
const config = [
  `channels: { desk: { type: webhook, secret: "${secret}", url: "http://127.0.0.1:9/" } }`,
  "agents: { main: { tools: { ask: [sessions_spawn] } }, other: {} }",
  "",
].join("\n");

let home: TemporaryFolder;
let gateway: WholeGateway;
let bobsRun = "";
let cleosToken = "";

async function call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
  const { status, body } = await gateway.rpc(method, params);
  expect({ method, status, body }).toMatchObject({ status: 200 });
  return body as Result<M>;
}

async function send(message: string, userId: string, idempotencyKey: string): Promise<string> {
  const { runId } = await call("chat.send", { sessionKey: "main", message, idempotencyKey, userId });
  return runId;
}

const ended = (runId: string, userId: string) => call("agent.wait", { runId, timeoutMs: 150_000, userId });

async function sendInbound(text: string): Promise<string> {
  const body = JSON.stringify({ text, peer: "17" });
  const [timestamp, messageId] = [String(Math.floor(Date.now() / 1000)), randomUUID()];
  const answer = await fetch(`${gateway.url}/channels/desk/inbound`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-skein-timestamp": timestamp,
      "x-skein-message-id": messageId,
      "x-skein-signature": signatureOf(secret, { timestamp, messageId, body }),
    },
    body,
  });
  return ((await answer.json()) as { runId: string }).runId;
}

beforeAll(async () => {
  home = temporaryFolder("skein-users-");
  gateway = await wholeGateway({ config, folder: home });
  await call("sessions.create", { key: "agent:main:session:operator" });
  await call("sessions.create", { key: "agent:main:session:trip", userId: "ann" });
  await ended(await send("repeat hello", "ann", "a"), "ann");
  bobsRun = await send("spawn one helper to describe Kyoto", "bob", "b");
  const isAsked = async () => expect((await call("approvals.list", { userId: "bob" })).count).toBe(1);
  await vi.waitFor(isAsked, { timeout: 150_000 });
  await ended(await sendInbound("repeat hi"), peer);
  cleosToken = await gateway.token({ scopes: ["read"], userId: "cleo" });
  for (const label of ["token", "phone"]) await gateway.token({ scopes: ["read"], userId: "ann", label });
  const family = "agent:other:session:family";
  for (const userId of ["ann", "bob"]) await call("sessions.create", { key: family, userId });
  const spawn = { name: "sessions_spawn", arguments: { task: "Say hello", background: false } };
  await call("tools.invoke", { ...spawn, sessionKey: family, userId: "ann" });
});
afterAll(async () => {
  await gateway.close();
  home.remove();
});

const cliAt = async (...args: readonly string[]) => {
  const place = { cwd: home.path, env: {}, home: home.path, columns: 200 };
  return runCommand([...args, "--dir", join(home.path, "root")], place);
};
const json = async (...args: readonly string[]) => {
  const { out, err, exit } = await cliAt(...args, "--json");
  expect({ exit, err }).toEqual({ exit: 0, err: "" });
  return JSON.parse(out) as Record<string, readonly { readonly userId?: string }[]>;
};

const repeated = (userId: string, count: number) => Array.from({ length: count }, () => userId);
const lists = {
  "sessions.list": {
    rows: "sessions",
    users: [undefined, ...repeated("ann", 4), ...repeated("bob", 2), peer],
  },
  "runs.list": { rows: "runs", users: ["ann", "ann", "bob", peer] },
  "approvals.list": { rows: "approvals", users: ["bob"] },
  "outbox.list": { rows: "messages", users: [peer] },
} as const;
type ListMethod = keyof typeof lists;
const listMethods = Object.keys(lists) as ListMethod[];
const usersIn = (method: ListMethod, answer: unknown) =>
  (answer as Record<string, { userId?: string }[]>)[lists[method].rows]
    ?.map(({ userId }) => userId)
    .toSorted();

describe("admin methods", () => {
  test("[OPR8] a caller who may not see other users is told of none", async () => {
    const place = { cwd: home.path, env: { SKEIN_TOKEN: cleosToken }, home: home.path };
    for (const command of ["sessions", "outbox"]) {
      const { out, err } = await runCommand([command, "ls", "--dir", join(home.path, "root")], place);
      expect({ out, err }).toMatchObject({ out: expect.not.stringContaining("other users"), err: "" });
    }
  });

  test("[OPR1] users.list counts the data of each user", async () => {
    const { count, users } = await call("users.list", {});
    const spent = {
      totalTokens: expect.any(Number),
      bytes: expect.any(Number),
      lastActiveAt: expect.any(Number),
    };
    const row = { ...spent, accessTokens: 0, openRuns: 0, runs: 0 };
    expect(users).toEqual([
      { ...row, sessions: 1, totalTokens: 0 },
      { ...row, userId: "ann", sessions: 4, runs: 2, accessTokens: 2 },
      { ...row, userId: "bob", sessions: 2, runs: 1, openRuns: 1 },
      { userId: "cleo", sessions: 0, runs: 0, openRuns: 0, totalTokens: 0, accessTokens: 1, bytes: 0 },
      { ...row, userId: peer, sessions: 1, runs: 1 },
    ]);
    expect(count).toBe(5);
    const ann = users.find(({ userId }) => userId === "ann");
    const { sessions } = await call("sessions.list", { userId: "ann" });
    const sum = (field: "totalTokens" | "bytes") =>
      sessions.reduce((all, each) => all + (each[field] ?? 0), 0);
    expect(ann).toMatchObject({
      totalTokens: sum("totalTokens"),
      bytes: sum("bytes"),
      lastActiveAt: Math.max(...sessions.map(({ updatedAt }) => updatedAt)),
    });
  });

  test("[OPR1] pages of users.list name each user once", async () => {
    const whole = (await call("users.list", {})).users;
    const found: unknown[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await call("users.list", { limit: 1, ...(cursor === undefined ? {} : { cursor }) });
      found.push(...page.users);
      cursor = page.nextCursor;
      if (cursor === undefined) break;
    }
    expect(found).toEqual(whole);
    expect(await gateway.rpc("users.list", { cursor: "nonsense" })).toMatchObject({ status: 400 });
  });

  test.each(listMethods)(
    "[OPR3] %s with allUsers has all users' rows, and each names its user",
    async (method) => {
      expect(usersIn(method, await call(method, { allUsers: true }))).toEqual(
        [...lists[method].users].toSorted(),
      );
    },
  );

  test("[OPR3] sessions.list has the children of each user's own sessions", async () => {
    const { sessions } = await call("sessions.list", { allUsers: true, search: ":family" });
    const children = new Map(
      sessions.map(({ userId, childSessions = [] }) => [userId, childSessions.length]),
    );
    expect(children).toEqual(
      new Map([
        ["ann", 1],
        ["bob", 0],
      ]),
    );
  });

  test("[OPR3] pages of sessions.list with allUsers cover the whole list", async () => {
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await call("sessions.list", {
        allUsers: true,
        limit: 2,
        ...(cursor === undefined ? {} : { cursor }),
      });
      found.push(...page.sessions.map(({ key, userId }) => `${userId} ${key}`));
      cursor = page.nextCursor;
      if (cursor === undefined) break;
    }
    expect(found).toEqual(
      (await call("sessions.list", { allUsers: true })).sessions.map(({ key, userId }) => `${userId} ${key}`),
    );
  });

  test("[OPR3] pages of runs.list with allUsers cover the whole list", async () => {
    const whole = (await call("runs.list", { allUsers: true })).runs.map(({ runId }) => runId);
    const found: string[] = [];
    for (let before: number | undefined; ; ) {
      const page = await call("runs.list", {
        allUsers: true,
        limit: 1,
        ...(before === undefined ? {} : { before }),
      });
      found.push(...page.runs.map(({ runId }) => runId));
      before = page.nextBefore;
      if (before === undefined) break;
    }
    expect(found).toEqual(whole);
  });

  test("[OPR3] the other filters still apply", async () => {
    const trip = await call("sessions.list", { allUsers: true, search: "trip" });
    expect(trip.sessions).toMatchObject([{ userId: "ann", key: "agent:main:session:trip" }]);
    const open = await call("runs.list", { allUsers: true, states: ["waiting"] });
    expect(open.runs).toMatchObject([{ runId: bobsRun, userId: "bob" }]);
    expect(open.approvals).toMatchObject([{ userId: "bob" }]);
    expect((await call("sessions.list", { allUsers: true, agentId: "nobody" })).count).toBe(0);
  });

  test.each([...listMethods, "users.list"] as const)(
    "[OPR5] %s is refused without the scope admin",
    async (method) => {
      const params = method === "users.list" ? {} : { allUsers: true };
      const token = await gateway.token({ scopes: ["read", "write", "tools"], userId: "ann" });
      const refused = await gateway.rpc(method, params, token);
      expect(refused).toMatchObject({ status: 403, body: { error: { code: "forbidden" } } });
      expect(JSON.stringify(refused.body)).toMatch(/\\"admin\\" scope/);
      const ofOne = await gateway.token({ scopes: ["read", "admin"], userId: "ann" });
      const { status, body } = await gateway.rpc(method, params, ofOne);
      expect({ status, body }).toMatchObject({ status: 403, body: { error: { code: "forbidden" } } });
      expect(JSON.stringify(body)).toContain("a token for all users");
    },
  );

  test.each([
    ["sessions.list", { userId: "ann" }],
    ["sessions.list", { spawnedBy: "main" }],
    ["runs.list", { sessionKey: "main" }],
    ["approvals.list", { sessionKey: "main" }],
    ["outbox.list", { userId: "ann" }],
  ] as const)("[OPR6] %s does not accept allUsers and %j", async (method, params) => {
    const { status, body } = await gateway.rpc(method, { ...params, allUsers: true });
    expect({ status, body }).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
    expect(JSON.stringify(body)).toContain("allUsers");
  });

  test("[OPR1] [OPR3] skein/client calls them", async () => {
    const client = await gateway.client();
    expect((await client.call("users.list", { limit: 2 })).count).toBe(2);
    expect((await client.call("outbox.list", { allUsers: true })).messages).toMatchObject([{ userId: peer }]);
  });
});

describe.each(["with", "without"])("the command line %s a gateway", (how) => {
  beforeAll(async () => {
    if (how === "without") await gateway.stop();
  });

  test("[OPR7] users ls", async () => {
    const { users } = await json("users", "ls");
    expect(users?.map(({ userId }) => userId)).toEqual([undefined, "ann", "bob", "cleo", peer]);
    const { out, exit } = await cliAt("users", "ls");
    expect(exit).toBe(0);
    const [head = "", ...rows] = out.split("\n");
    expect(head.split(/\s+/)).toEqual([
      "USER",
      "SESSIONS",
      "RUNS",
      "OPEN",
      "TOKENS",
      "ACCESS",
      "TOKENS",
      "SIZE",
      "ACTIVE",
    ]);
    expect(rows.find((row) => row.startsWith("bob"))).toMatch(/^bob +2 +1 +1 /);
    expect(rows.find((row) => row.startsWith("(unnamed)"))).toMatch(/^\(unnamed\) +1 +0/);
    const first = await cliAt("users", "ls", "--limit", "2");
    expect(first.out).toContain("more: --cursor @ann");
    expect((await json("users", "ls", "--limit", "2", "--cursor", "@ann")).users).toMatchObject([
      { userId: "bob" },
      { userId: "cleo" },
    ]);
  });

  test.each([
    ["sessions.list", ["sessions", "ls"]],
    ["runs.list", ["runs", "ls"]],
    ["approvals.list", ["approvals", "ls"]],
    ["outbox.list", ["outbox", "ls"]],
  ] as const)("[OPR7] --all-users: %s", async (method, command) => {
    expect(usersIn(method, await json(...command, "--all-users"))).toEqual(
      [...lists[method].users].toSorted(),
    );
    const { out, exit } = await cliAt(...command, "--all-users");
    expect(exit).toBe(0);
    expect(out.split("\n")[0]).toMatch(/^(\S+ +)?USER /);
    for (const userId of lists[method].users) expect(out).toContain(userId ?? "(unnamed)");
    const own = await json(...command);
    expect(usersIn(method, own)).toEqual(lists[method].users.filter((userId) => userId === undefined));
    const both = await cliAt(...command, "--all-users", "--user", "ann");
    expect(both.exit).toBe(2);
    expect(both.err).toContain("--all-users");
  });

  test.each([
    ["sessions", 7],
    ["outbox", 1],
  ])("[OPR8] %s ls says how many rows of other users it leaves out", async (command, count) => {
    const { out } = await cliAt(command, "ls");
    expect(out).toMatch(new RegExp(`\n${count} more from other users \\(use --all-users\\)\n$`));
    for (const more of ["--all-users", "--user=ann", "--json"])
      expect((await cliAt(command, "ls", more)).out).not.toContain("more from other users");
  });

  test("[OPR7] the commands that runs ls and approvals ls print name the user", async () => {
    for (const command of ["runs", "approvals"]) {
      const { out } = await cliAt(command, "ls", "--all-users");
      expect(out).toMatch(/runs approve \S+.* --user bob/);
    }
  });
});
