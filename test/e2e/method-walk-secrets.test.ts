import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Result } from "../../src/entry-client.ts";
import type { EntryDraft } from "../../src/index.ts";
import type { LedgerRuns } from "../../src/runs/ledger/ledger-runs.ts";
import { isLeaked, secretSamples } from "../golden/redaction/secrets.ts";
import { eventually } from "../support/gateway-server.ts";
import { closeAll, connected } from "../support/mcp-client.ts";
import { answered, said } from "../support/store-calls.ts";
import { WalkCalls } from "../support/walk-calls.ts";
import { insidesIn } from "../support/walk-checks.ts";
import { readEvents } from "../support/walk-events.ts";
import { openedGateway, walkConfig } from "../support/walk-world.ts";

/** With a token of Ann's that lacks `admin`, no secret or part of a secret is ever returned unmasked. */

const scope = { userId: "ann", agentId: "main" };
const key = "agent:main:session:vault";
const folder = "/srv/of-the-machine";
/** One secret in each vendor's format, each on its own line. */
const lines = secretSamples(3, 1).filter(({ text }) => !text.includes("\n"));
const samples = [...new Map(lines.toReversed().map((each) => [each.vendor, each])).values()];
const secrets = samples.map(({ secret }) => secret);
/** Recognized by its format alone, so that it is masked everywhere. */
const first = samples.find(({ vendor }) => vendor === "OpenAI project") ?? { text: "", secret: "" };
/** Text that a model streaming word by word would not split. */
const oneWord = samples.find(({ vendor }) => vendor === "Google API") ?? first;
const allOfThem = samples.map(({ text }) => text).join("\n");
/** Text with a secret that spans the position at which the text is cut. */
const across = (at: number) =>
  `${"x ".repeat(at / 2 - Math.floor(first.secret.length / 4))}${first.secret} ${"y ".repeat(at / 2)}`;

let world: Awaited<ReturnType<typeof openedGateway>>;
let calls: WalkCalls;
let plain = "";
let sha256 = "";

beforeAll(async () => {
  world = await openedGateway(walkConfig);
  calls = new WalkCalls(world.gateway.url);
  plain = await world.gateway.token({ scopes: ["read", "write", "tools"], userId: "ann" });
  const { store } = world.deps;
  const meta = { displayName: `of ${first.text}` };
  await store.sessions.create(scope, { key, sessionId: "vault", cwd: folder, meta });
  sha256 = await store.blobs.put(scope, Buffer.from(`${"z".repeat(100)} ${allOfThem}`));
  await store.sessions.append(
    scope,
    "vault",
    drafts().map((draft) => ({ draft })),
  );
});
afterEach(closeAll);
afterAll(async () => {
  await calls?.close();
  await world?.gateway.close();
});

function drafts(): EntryDraft[] {
  const calling = answered("");
  if (calling.type !== "message" || calling.message.role !== "assistant") throw new Error("no answer");
  const blob = { sha256, bytes: 1, mimeType: "text/plain", was: "text" };
  const made = {
    role: "toolResult" as const,
    toolCallId: "c1",
    toolName: "run",
    isError: false,
    timestamp: 3,
  };
  const ran = {
    role: "bashExecution" as const,
    command: `echo ${first.text}`,
    output: first.text,
    exitCode: 0,
  };
  return [
    said(across(200)),
    said(`wanted ${allOfThem}`),
    said(across(12_000)),
    {
      type: "message",
      message: {
        ...calling.message,
        content: [
          { type: "thinking", thinking: allOfThem },
          { type: "text", text: allOfThem },
          {
            type: "toolCall",
            id: "c1",
            name: "run",
            arguments: { all: allOfThem, password: "open-sesame-77" },
          },
        ],
      },
    },
    {
      type: "message",
      message: { ...made, content: [{ type: "text", text: "[long]", skein: { blob } }] },
    } as EntryDraft,
    {
      type: "message",
      message: {
        ...ran,
        timestamp: 4,
        cancelled: false,
        truncated: true,
        fullOutputPath: `${folder}/out.txt`,
      },
    } as EntryDraft,
    { type: "custom_message", customType: "note", content: allOfThem, display: true },
    { type: "session_info", name: `named ${first.text}` },
  ];
}

/** Finds leaked secrets. The ends of a secret are allowed, but half of the first secret is not. */
function leaksIn(text: string): string[] {
  const whole = secrets.filter(
    (secret) => isLeaked(text, { secret }) || isLeaked(JSON.stringify(text), { secret }),
  );
  const halves = [first, oneWord].flatMap(({ secret }) =>
    Array.from({ length: secret.length - 13 }, (_, at) => secret.slice(at, at + 14)),
  );
  return [...whole, ...halves.filter((half) => text.includes(half)).slice(0, 1)];
}

function expectSafe(text: string, what: string): void {
  expect(leaksIn(text), what).toEqual([]);
  expect(text.includes("open-sesame-77"), what).toBe(false);
  expect(insidesIn(text), what).toEqual([]);
}

const send = (message: string, sessionKey = "agent:main:session:talk") =>
  calls.http(plain, "sessions.send", {
    key: sessionKey,
    message,
    idempotencyKey: crypto.randomUUID(),
    timeoutMs: 150_000,
  });

describe("secrets for callers without admin", () => {
  test.each([
    ["sessions.list", {}],
    ["sessions.list", { search: "vault" }],
    ["sessions.get", { key }],
    ["sessions.resolve", { key }],
    ["sessions.preview", { keys: [key], maxChars: 2000, limit: 50 }],
    ["sessions.preview", { keys: [key], maxChars: 205, limit: 50 }],
    ["sessions.tree", { key }],
    ["sessions.entries", { key, along: "all" }],
    ["sessions.search", { query: "wanted" }],
    ["sessions.context", { key, model: "anthropic/claude-sonnet-4-5", wire: true }],
    ["sessions.export", { key, format: "jsonl" }],
    ["sessions.export", { key, format: "md", all: true }],
    ["sessions.export", { key, format: "html" }],
    ["sessions.usage", { key }],
    ["chat.history", { sessionKey: key }],
    ["sessions.rename", { key, name: `renamed ${first.text}` }],
    ["sessions.archive", { key, archived: false }],
    ["tools.invoke", { sessionKey: key, name: "sessions_list", arguments: {} }],
    ["tools.invoke", { sessionKey: key, name: "sessions_history", arguments: { sessionKey: key } }],
    ["tools.invoke", { sessionKey: key, name: "session_search", arguments: { query: "wanted" } }],
    ["tools.invoke", { sessionKey: key, name: "session_status", arguments: {} }],
    ["access.explain", { asker: key, target: key }],
    ["agents.list", {}],
    ["models.list", {}],
  ])("[WLK7] %s %j shows no secret and no file path", async (method, params) => {
    const { code, text } = await calls.http(plain, method, params);
    expect(code, text.slice(0, 500)).toBe("ok");
    expectSafe(text, method);
  });

  test("[GSV1] sessions.context shows an empty session whose agent uses the rehearsal model", async () => {
    await calls.http(plain, "sessions.create", { key: "agent:main:session:fresh" });
    const { text, payload } = await calls.http(plain, "sessions.context", {
      key: "agent:main:session:fresh",
    });
    expect(payload, text).toMatchObject({ request: { messages: [{ role: "user" }] } });
  });

  test("[WLK7] a search for a secret finds nothing that would confirm it", async () => {
    const { payload } = await calls.http(plain, "sessions.search", { query: first.secret });
    expect(payload).toMatchObject({ count: 0 });
  });

  test("[WLK7] pieces of a blob, and pages of a history, show no part of a secret", async () => {
    const bytes: Buffer[] = [];
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const { payload } = await calls.http(plain, "blobs.get", { key, sha256, offset, length: 110 });
      const piece = payload as Result<"blobs.get">;
      bytes.push(Buffer.from(piece.data, "base64"));
      expectSafe(bytes.at(-1)?.toString("utf8") ?? "", "a piece");
      offset = piece.nextOffset;
    }
    expectSafe(Buffer.concat(bytes).toString("utf8"), "the blob");
    for (let before: string | undefined, pages = 0; pages < 20; pages++) {
      const page = await calls.http(plain, "chat.history", {
        sessionKey: key,
        limit: 1,
        ...(before === undefined ? {} : { before }),
      });
      expectSafe(page.text, "a page");
      before = (page.payload as Result<"chat.history">).nextBefore;
      if (before === undefined) break;
    }
  });

  test("[WLK7] runs, replies, events and streams show no secret, even if the answer was streamed and the input shortened", async () => {
    const { url } = world.gateway;
    const stream = await readEvents(url, plain, "/events");
    const socket = await calls.socket(plain);
    await calls.ws(plain, "sessions.subscribe", {});
    const answers = [await send(`repeat ${allOfThem}`), await send(`repeat ${across(200)}`)];
    answers.push(await send(`think about ${oneWord.text}`), await send(`fail ${first.text}`));
    answers.push(await send("list the sessions"), await send("read the session vault"));
    // A secret that is missing its end has no recognizable format.
    answers.push(await send(`repeat ${"x ".repeat(81)}${oneWord.secret} ${"y ".repeat(40)}`));
    const { store } = world.deps;
    await store.sessions.append(
      scope,
      "vault",
      drafts().map((draft) => ({ draft })),
    );
    answers.push(await send("repeat the end of it"));
    for (const { text, payload } of answers) {
      expectSafe(text, "an answer");
      const { runId } = payload as Result<"sessions.send">;
      expectSafe((await calls.http(plain, "runs.get", { runId })).text, "runs.get");
      expectSafe((await calls.http(plain, "agent.wait", { runId, timeoutMs: 0 })).text, "agent.wait");
    }
    expectSafe((await calls.http(plain, "runs.list", {})).text, "runs.list");
    await eventually(
      () =>
        stream.text().includes("the end of it") && JSON.stringify(socket.frames).includes("the end of it"),
    ).toBe(true);
    expectSafe(stream.text(), "/events");
    expectSafe(JSON.stringify(socket.frames), "events of a socket");
    const deltas = socket.frames as unknown as { event?: string; payload: { delta?: string } }[];
    expectSafe(
      deltas
        .filter(({ event }) => event === "run.delta")
        .map(({ payload }) => payload.delta)
        .join(""),
      "deltas",
    );
    stream.close();
    const again = await readEvents(url, plain, "/events", "0");
    await eventually(() => again.text().includes("the end of it")).toBe(true);
    expectSafe(again.text(), "/events, once more");
    again.close();
  });

  test("[WLK7] approvals and dead letters show no secret", async () => {
    const runs = world.deps.runs as unknown as LedgerRuns;
    const { payload } = await calls.http(plain, "chat.send", {
      sessionKey: "agent:main:session:slow",
      message: "be slow for 500 seconds",
      idempotencyKey: "slow",
    });
    const { runId } = payload as Result<"chat.send">;
    await eventually(async () => (await runs.get(runId))?.state).toBe("running");
    const run = await runs.get(runId);
    if (run === null) throw new Error("no run");
    const stream = await readEvents(world.gateway.url, plain, "/events");
    const question = {
      toolCallId: "c",
      toolName: "pay",
      arguments: { all: allOfThem, password: "open-sesame-77" },
    };
    const { approvalId } = await runs.requestApproval(
      { runId, fence: run.fence },
      { ...question, expiresAt: Date.now() + 3_600_000 },
    );
    const target = {
      channel: "session",
      to: `agent:main:session:${first.secret.slice(0, 60).toLowerCase()}`,
    };
    const { outboxId } = await runs.outbox.put({
      session: run.session,
      runId,
      target,
      text: allOfThem,
      idempotencyKey: "l",
    });
    await eventually(async () => (await runs.outbox.get(outboxId))?.state).toBe("dead");
    await eventually(() => stream.text().includes("outbox.dead")).toBe(true);
    for (const [method, params] of [
      ["approvals.list", {}],
      ["runs.get", { runId }],
      ["runs.list", {}],
      ["approvals.resolve", { approvalId, answer: "denied" }],
      ["outbox.list", {}],
      ["outbox.retry", { outboxId }],
      ["outbox.drop", { outboxId }],
      ["chat.abort", { sessionKey: "agent:main:session:slow" }],
    ] as const) {
      const { code, text } = await calls.http(plain, method, params);
      expect(code, text).toBe("ok");
      expectSafe(text, method);
    }
    await eventually(() => stream.text().includes("outbox.dropped")).toBe(true);
    expectSafe(stream.text(), "/events");
    stream.close();
  });

  test("[WLK7] MCP shows no secret and no file path", async () => {
    const client = await connected({ url: `${world.gateway.url}/mcp` }, "2025-11-25", { token: plain });
    const uri = `skein://sessions/${encodeURIComponent(key)}`;
    expectSafe(JSON.stringify(await client.readResource({ uri })), "a resource");
    expectSafe(JSON.stringify(await client.listResources()), "resources");
    for (const [name, args] of [
      ["sessions_list", {}],
      ["sessions_history", { sessionKey: key, includeTools: true }],
      ["session_search", { query: "wanted" }],
      ["session_status", { sessionKey: key }],
    ] as const) {
      expectSafe(JSON.stringify(await client.callTool({ name, arguments: args })), name);
    }
  });
});
