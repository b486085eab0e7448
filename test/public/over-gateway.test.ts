import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeFamily } from "../../scripts/sample-family.ts";
import type { Terminal } from "../../src/cli/main.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { GatewayPeer, goodToken } from "../support/gateway-peer.ts";
import type { RunListPayload } from "../support/payloads.ts";
import { runningPath } from "../support/running-gateway.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

/** Two agents that can reach each other, as in the sample family. */
const config = `agents: { main: { model: rehearsal/basic }, support: { model: rehearsal/basic } }
tools: { sessions: { visibility: all }, agentToAgent: { enabled: true } }
`;

let sample: TemporaryFolder;
let over: TemporaryFolder;
let direct: TemporaryFolder;
let gateway: WholeGateway;

beforeAll(async () => {
  sample = temporaryFolder("skein-sample-");
  // The family's own configuration requires an approval. Without it, no run stays open.
  mkdirSync(join(sample.path, "root"));
  writeFileSync(join(sample.path, "root", "skein.yaml"), config);
  await makeFamily(join(sample.path, "root"), { say: () => undefined });
});
afterAll(() => sample.remove());

/** The family with a gateway running on it, and the same family without one. */
beforeEach(async () => {
  over = temporaryFolder("skein-over-");
  direct = temporaryFolder("skein-direct-");
  for (const { path } of [over, direct]) {
    cpSync(sample.path, path, { recursive: true });
    rmSync(join(path, "root", "skein.yaml"));
  }
  gateway = await wholeGateway({ folder: over, config });
  cpSync(join(over.path, "skein.yaml"), join(direct.path, "skein.yaml"));
});
afterEach(async () => {
  await gateway.close();
  over.remove();
  direct.remove();
});

function call({ path }: TemporaryFolder, args: readonly string[], more: Partial<Terminal> = {}) {
  const { env = {}, ...rest } = more;
  return run(args, { cwd: path, home: path, env: { SKEIN_DIR: join(path, "root"), ...env }, ...rest });
}
const here = (args: readonly string[], more?: Partial<Terminal>) => call(over, args, more);
const piped = (text: string) => ({ input: () => ({ stream: Readable.from([text]), typed: false }) });

/** Values that differ each time: generated IDs and times. */
function without(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<id>")
    .replace(/\b[0-9a-f]{16}\b/g, "<id>")
    .replace(/\b\d{13}\b/g, "0")
    .replace(/"(\w*At|\w*Ms|seq|deadline|nextBefore|version)":\d+/g, '"$1":0')
    .replaceAll(over.path, "<home>")
    .replaceAll(direct.path, "<home>");
  return JSON.parse(text);
}

describe("commands over a running gateway, as on the folder itself", () => {
  test("[CLG1] the payloads of chat commands are the same", async () => {
    const spawn = JSON.stringify({ task: "repeat a child", background: true, label: "kid" });
    const send = JSON.stringify({ sessionKey: "agent:support:main", message: "repeat to you" });
    const commands: readonly (readonly string[])[] = [
      ["send", "main", "repeat good morning"],
      ["send", "agent:main:session:porto", "repeat again", "--key", "k-1", "--timeout", "60"],
      ["send", "porto", "repeat again", "--key", "k-1"],
      ["send", "por", "repeat by a beginning", "--queue", "followup"],
      ["send", "main", "fail"],
      ["send", "nobody", "hello"],
      ["send", "./file.jsonl", "hello"],
      ["send", "main", " "],
      ["spawn", "repeat from a child", "--label", "first"],
      ["spawn", "repeat it", "--session", "agent:main:session:new", "--background"],
      ["tool", "sessions_list", '{"limit": 3}'],
      ["tool", "sessions_list", "[]"],
      ["tool", "sessions_send", send],
      ["tool", "sessions_spawn", spawn, "--session", "porto"],
      ["tool", "sessions_history", '{"sessionKey": "nobody"}'],
      ["tool", "session_status", "{}", "--session", "agent:main:session:none"],
      ["tool", "agents_list", "{}", "--agent", "nobody"],
      ["tool", "nothing"],
      ["access", "main", "agent:support:main"],
      ["access", "nobody", "main"],
      ["runs", "ls", "--session", "porto"],
      ["runs", "ls", "--state", "error", "--limit", "1"],
      ["outbox", "show", "nothing"],
      ["sessions", "compact", "main"],
      ["sessions", "compact", "main", "--summary", "s"],
    ];
    for (const args of commands) {
      const [theirs, ours] = [await here([...args, "--json"]), await call(direct, [...args, "--json"])];
      const told = { args, err: theirs.err, exit: theirs.exit, payload: without(JSON.parse(theirs.out)) };
      expect.soft(told).toEqual({
        args,
        err: ours.err,
        exit: ours.exit,
        payload: without(JSON.parse(ours.out)),
      });
    }
  });

  test("the reply streams, with tools and children next to it", async () => {
    const pieces: string[] = [];
    const notes: string[] = [];
    const watched = {
      isWatched: true,
      out: (text: string) => void pieces.push(text),
      err: (text: string) => void notes.push(text),
    };
    const sent = await here(["send", "main", "describe the gardens of Kyoto"], watched);
    expect(sent.exit).toBe(0);
    expect(pieces.length).toBeGreaterThan(2);
    const { runs } = JSON.parse((await here(["runs", "ls", "--limit", "1", "--json"])).out) as RunListPayload;
    expect(pieces.join("")).toBe(`${runs[0]?.reply}\n`);
    await here(["send", "main", "spawn two helpers to repeat good morning and summarize"], watched);
    expect(notes.join("")).toMatch(/→ sessions_spawn/);
    expect(notes.join("")).toMatch(/↳ subagent:\S+: ok/);
    const open = JSON.parse((await here(["runs", "ls", "--state", "open", "--json"])).out);
    expect(open.count).toBe(0);
  });

  test("--no-wait leaves it to the gateway; Ctrl-C aborts it there", async () => {
    const left = await here(["send", "main", "repeat later", "--no-wait"]);
    expect(left.out).toMatch(/^accepted; the gateway will run it\n/);
    const [, runId = ""] = /run {2}(\S+)/.exec(left.out) ?? [];
    const stateOf = async () => JSON.parse((await here(["runs", "show", runId, "--json"])).out).run.state;
    await expect.poll(stateOf).toBe("ok");
    let interrupt: () => void = () => undefined;
    const onInterrupt = (listener: () => void) => {
      interrupt = listener;
      return () => undefined;
    };
    const slow = here(["send", "main", "be slow for 300 seconds", "--json"], { onInterrupt });
    const running = async () => (await here(["runs", "ls", "--json"])).out.includes('"running"');
    await expect.poll(running).toBe(true);
    interrupt();
    const { out, exit } = await slow;
    expect({ state: JSON.parse(out).state, exit }).toEqual({ state: "aborted", exit: 1 });
  });

  test("a chat goes through the gateway, including slash commands", async () => {
    const lines = [
      "repeat one",
      "/branch",
      "repeat two",
      "/tree",
      "/model rehearsal/basic",
      "/model",
      "/compact",
      "/fork",
      "/status",
      "/new",
      "repeat three",
    ];
    const both = await Promise.all(
      [over, direct].map((each) => call(each, ["chat", "session:talk"], piped(lines.join("\n")))),
    );
    for (const { out, err, exit } of both) {
      expect(exit).toBe(0);
      expect(out).toMatch(/^one\ntwo\n[\s\S]*2 branches[\s\S]*\nthree\n$/);
      expect(err).toContain("model: rehearsal/basic");
      expect(err).toContain("not compacted: everything is recent enough to keep");
      expect(err).toMatch(/now in session:\S+, forked from session:talk/);
    }
    const [, folder] = both;
    expect(both[0]?.err.replace(/…?[0-9a-f-]{8,}/g, "#")).toBe(folder?.err.replace(/…?[0-9a-f-]{8,}/g, "#"));
  });
});

describe("SKEIN_TOKEN", () => {
  test.each([
    ["of another machine", { host: "elsewhere" }],
    ["of this machine, which cannot be verified", { started: null, bootId: null }],
  ])("[ATG1] is not sent if gateway.json names a gateway %s", async (_, claimed) => {
    const peer = new GatewayPeer();
    await peer.listen();
    try {
      const file = runningPath(gateway.root);
      const written = JSON.parse(readFileSync(file, "utf8"));
      // Resolves to the peer but is not the address of any machine.
      const url = peer.url.replace("127.0.0.1", "0.0.0.0");
      writeFileSync(file, JSON.stringify({ ...written, ...claimed, url }));
      rmSync(join(gateway.root, "token"));
      const listed = await here(["sessions", "ls"], { env: { SKEIN_TOKEN: "skein_mine" } });
      expect(listed.err).toContain("is never sent to another machine");
      expect(peer.connects).toBe(0);
      writeFileSync(file, JSON.stringify({ ...written, url: peer.url }));
      await here(["sessions", "ls"], { env: { SKEIN_TOKEN: goodToken } });
      expect(peer.connects).toBe(1);
    } finally {
      await peer.close();
    }
  });
});

describe("a gateway with limits", () => {
  test("a token with too few scopes gets a clear refusal from the gateway", async () => {
    const token = await gateway.token({ label: "reader", scopes: ["read"] });
    const env = { SKEIN_TOKEN: token };
    const before = JSON.parse((await here(["runs", "ls", "--json"], { env })).out).count;
    for (const args of [
      ["send", "main", "repeat no"],
      ["spawn", "repeat no"],
      ["tool", "sessions_list"],
      ["sessions", "compact", "main"],
    ]) {
      const refused = await here(args, { env });
      expect(refused).toMatchObject({ out: "", exit: 1 });
      expect(refused.err).toMatch(/^error: .*scope.*\(forbidden\)\n$/);
      expect(JSON.parse((await here([...args, "--json"], { env })).out)).toMatchObject({ code: "forbidden" });
    }
    expect(JSON.parse((await here(["runs", "ls", "--json"])).out).count).toBe(before);
  });

  test("a token with only write gets its reply, and one with only tools its result", async () => {
    const writer = { env: { SKEIN_TOKEN: await gateway.token({ label: "w", scopes: ["write"] }) } };
    expect(await here(["send", "main", "repeat yes"], { ...writer, isWatched: true })).toEqual({
      out: "yes\n",
      err: "",
      exit: 0,
    });
    const tools = { env: { SKEIN_TOKEN: await gateway.token({ label: "t", scopes: ["tools"] }) } };
    const spawned = await here(["tool", "sessions_spawn", '{"task": "repeat it"}'], tools);
    expect(spawned).toMatchObject({
      exit: 0,
      err: expect.stringContaining("the gateway continues the work"),
    });
  });

  test("one that died and left its file, or is unreachable, is skipped", async () => {
    const file = runningPath(gateway.root);
    const left = JSON.parse(readFileSync(file, "utf8"));
    await gateway.stop();
    expect(existsSync(file)).toBe(false);
    const unreachable = { ...left, pid: process.pid };
    writeFileSync(file, JSON.stringify(unreachable));
    const told = await here(["send", "main", "repeat still"]);
    expect(told).toMatchObject({ out: "still\n", exit: 0 });
    expect(told.err).toMatch(
      /^note: The gateway at \S+ was not used: .*opens the folder directly instead\.\n$/,
    );
    expect(await here(["send", "main", "repeat still", "--json"])).toMatchObject({ err: "", exit: 0 });
    writeFileSync(file, JSON.stringify({ ...left, pid: 2 ** 22 + 1 }));
    expect(await here(["send", "main", "repeat on"])).toEqual({ out: "on\n", err: "", exit: 0 });
    const open = JSON.parse((await here(["runs", "ls", "--state", "open", "--json"])).out);
    expect(open.count).toBe(0);
  });
});
