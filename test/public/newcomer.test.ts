import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Type from "typebox";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { ConfigInput, SendOptions } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool, HookRegistry, SkeinError } from "../../src/index.ts";
import { run } from "../support/cli.ts";
import { Started } from "../support/cli-process.ts";
import type { DoctorPayload, ImportPayload, RunPayload, UserListPayload } from "../support/payloads.ts";
import { sessionText, userLine } from "../support/session-text.ts";
import { signatureOf } from "../support/webhook-signature.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const sample = (name: string) => fileURLToPath(new URL(`../golden/interchange/${name}`, import.meta.url));
let home: TemporaryFolder;

beforeEach(() => {
  home = temporaryFolder();
});
afterEach(() => home.remove());

function cli(...args: readonly string[]) {
  return run(args, { cwd: home.path, env: { SKEIN_DIR: "data" } });
}

async function leave(ref: string, text: string): Promise<string> {
  const { out } = await cli("send", ref, text, "--no-wait", "--json");
  return (JSON.parse(out) as { runId: string }).runId;
}

async function shownRun(runId: string): Promise<RunPayload["run"]> {
  const { out } = await cli("runs", "show", runId, "--json");
  return (JSON.parse(out) as RunPayload).run;
}

describe("queued runs of a folder without a gateway", () => {
  test("[NWC5] send, spawn and tool do not run other sessions' queue", async () => {
    const left = await leave("session:other", "repeat later");
    for (const args of [
      ["send", "main", "repeat now"],
      ["spawn", "repeat now"],
      ["tool", "sessions_spawn", '{"task":"repeat now"}'],
    ])
      expect(await cli(...args)).toMatchObject({ exit: 0 });
    expect(await shownRun(left)).toMatchObject({ state: "queued" });
    expect((await shownRun(left)).startedAt).toBeUndefined();
  });

  test("[NWC5] --no-wait names the command that runs it", async () => {
    const { out } = await cli("send", "main", "repeat later", "--no-wait");
    expect(out).toContain(
      "accepted; it will run with the next skein start or the next message to this session",
    );
  });

  test("[NWC6] a leftover run of the session is finished first", async () => {
    const left = await leave("main", "spawn a helper to repeat later");
    const { out } = await cli("send", "main", "repeat now", "--queue", "followup", "--json");
    expect(JSON.parse(out)).toMatchObject({ reply: "now" });
    expect(await shownRun(left)).toMatchObject({ state: "ok" });
  });

  test.each([
    ["spawn", "repeat now", "--background"],
    ["tool", "sessions_spawn", '{"task":"repeat now","background":true}'],
    ["tool", "sessions_send", '{"sessionKey":"main","message":"repeat now"}', "--session", "session:other"],
  ])(
    "[ATF21] %s %s finishes the leftover run of the session, with everything it started",
    async (...args) => {
      writeFileSync(`${home.path}/skein.yaml`, "tools: { sessions: { visibility: all } }\n");
      const left = await leave("main", "spawn a helper to repeat later");
      expect(await cli(...args)).toMatchObject({ exit: 0 });
      const { out } = await cli("runs", "ls", "--json");
      const { runs } = JSON.parse(out) as { runs: RunPayload["run"][] };
      expect(runs.filter(({ rootId }) => rootId === left).length).toBeGreaterThan(1);
      expect(runs.filter(({ endedAt }) => endedAt === undefined)).toEqual([]);
      expect(await shownRun(left)).toMatchObject({ state: "ok" });
    },
  );

  test("[NWC7] workers: own leaves what others queued, and by default everything is run", async () => {
    const left = await leave("session:other", "repeat later");
    const dir = `${home.path}/data`;
    const own = await createSkein({ dir, config: null, workers: "own" });
    const { reply } = await own.session().send("repeat now").result;
    expect(reply).toBe("now");
    expect(await own.runs.get(left)).toMatchObject({ state: "queued", startedAt: null });
    await own.close();
    const all = await createSkein({ dir, config: null });
    expect(await all.ended(left)).toMatchObject({ state: "ok", outcome: { reply: "later" } });
    await all.close();
  });
});

describe("requests that cannot be carried out", () => {
  test.each([
    ["an unknown field", { limitt: 3 }, /sessions\.list: .*limitt/],
    ["a value out of range", { limit: 0 }, /sessions\.list: limit/],
  ])("[LIB6] %s in a service is a SkeinError", async (_, query, problem) => {
    const skein = await createSkein({ memory: true, config: null });
    const failed = skein.sessions.list(query as object);
    await expect(failed).rejects.toBeInstanceOf(SkeinError);
    await expect(failed).rejects.toMatchObject({
      code: "invalid_arguments",
      message: expect.stringMatching(problem),
    });
    await expect(skein.sessions.search({ query: "" })).rejects.toBeInstanceOf(SkeinError);
    await skein.close();
  });

  test.each([["foo/bar"], ["rehearsal/nothing"]])(
    "[NWC9] the model %s is refused by every entry point",
    async (model) => {
      const { exit, err } = await cli("send", "main", "hello", "--model", model);
      expect(exit).not.toBe(0);
      expect(err).toMatch(/Provider "foo" is unknown|There is no model rehearsal\/nothing/);
      const skein = await createSkein({ dir: `${home.path}/data`, config: null });
      await expect(skein.session().send("hello", { model }).result).rejects.toBeInstanceOf(SkeinError);
      expect(await skein.session().record()).toBeNull();
      expect(await skein.runs.list({})).toEqual([]);
      await skein.close();
    },
  );
});

describe("options of the library", () => {
  const withOption = (option: string) => ({ [option]: 1 }) as object;

  test("[NWC27] unknown options are refused by name", async () => {
    const refused = (name: string) => ({
      code: "invalid_arguments",
      message: expect.stringContaining(name),
    });
    await expect(createSkein(withOption("dirr"))).rejects.toMatchObject(
      refused('createSkein has no option "dirr"'),
    );
    const skein = await createSkein({ memory: true, config: null });
    const session = skein.session();
    const misspelled = withOption("timeoutSeconds");
    const noOption = refused('send has no option "timeoutSeconds"');
    await expect(session.send("repeat hello", misspelled).result).rejects.toMatchObject(noOption);
    await expect(session.accept("repeat hello", misspelled)).rejects.toMatchObject(noOption);
    expect(await session.record()).toBeNull();
    await session.send("repeat hello").result;
    await expect(skein.xray({}, withOption("modle"))).rejects.toMatchObject(
      refused('xray has no option "modle"'),
    );
    expect(() => skein.session("trip" as unknown as object)).toThrow('{ sessionId: "trip" }');
    await skein.close();
  });

  test("[NWC28] skein.xray accepts the model as a string", async () => {
    const skein = await createSkein({ memory: true, config: null });
    await skein.session().send("repeat hello").result;
    const { request } = await skein.xray({}, "openai/gpt-5");
    expect(request).toMatchObject({ provider: "openai", model: "gpt-5" });
    await skein.close();
  });
});

test("[REH1] a hook's context before the prompt does not hide the request from the rehearsal model", async () => {
  const hooks = new HookRegistry(() => undefined);
  hooks.on("before_agent_start", ({ ctx }) => ({
    prependContext: `The user is ${ctx.userId ?? "unnamed"}.\n\nIt is a fine day.`,
  }));
  const add = defineTool({
    name: "add",
    description: "Adds.",
    parameters: Type.Object({ a: Type.Number(), b: Type.Number() }),
    execute: ({ a, b }) => String(a + b),
  });
  const agents = [defineAgent({ id: "main", model: "rehearsal/basic", tools: [add] })];
  const skein = await createSkein({ memory: true, config: null, agents, hooks });
  const session = skein.session({ userId: "ann" });
  expect((await session.send("repeat hello").result).reply).toBe("hello");
  expect((await session.send('use the tool add with {"a": 2, "b": 3}').result).reply).toContain("5");
  expect((await session.send("Nothing of the kind").result).reply).toContain("You said");
  await skein.close();
});

describe("sessions import", () => {
  async function importing(...args: readonly string[]) {
    const { out } = await cli("sessions", "import", ...args, "--json");
    return JSON.parse(out) as ImportPayload;
  }

  test("[NWC20] a session does not count as old on the day of its import", async () => {
    writeFileSync(
      join(home.path, "skein.yaml"),
      "session: { maintenance: { mode: enforce, pruneAfter: 30d, trashAfter: 1d } }\n",
    );
    const { imported } = await importing(sample("codex.jsonl"));
    const decisions = async (days: number) => {
      const now = () => Date.now() + days * 86_400_000;
      const { out } = await run(["doctor", "--json"], { cwd: home.path, env: { SKEIN_DIR: "data" }, now });
      return (JSON.parse(out) as DoctorPayload).maintenance?.decisions;
    };
    expect(await decisions(29)).toEqual([]);
    expect(await decisions(31)).toMatchObject([{ sessionId: imported[0]?.sessionId, action: "trash" }]);
  });

  test("sessions in the trash are skipped, with the command that restores them", async () => {
    const { imported } = await importing(sample("codex.jsonl"));
    const { sessionId = "" } = imported[0] ?? {};
    await cli("sessions", "rm", sessionId, "--yes");
    const { out } = await cli("sessions", "import", sample("codex.jsonl"));
    const command = `skein sessions restore ${sessionId}`;
    expect(out).toContain(`1 session: in the trash; restore with\n    ${command}\n`);
    expect(await cli(...command.split(" ").slice(1))).toMatchObject({ exit: 0 });
    expect((await importing(sample("codex.jsonl"))).skipped).toMatchObject([{ why: "already imported" }]);
  });
});

describe("sessions import --from", () => {
  test("a file of another program fails, with the name of that program", async () => {
    const { out, exit } = await cli("sessions", "import", sample("claude-code.jsonl"), "--from", "codex");
    expect(exit).toBe(1);
    expect(out).toContain(
      "claude-code.jsonl is a file from Claude Code, not from Codex. Name the right program, or omit it",
    );
  });

  test("files of other programs in a folder are counted", async () => {
    mkdirSync(join(home.path, "found"));
    const importFound = () => cli("sessions", "import", "found", "--from", "codex");
    expect(await importFound()).toMatchObject({
      out: expect.stringContaining("no sessions were found"),
      exit: 1,
    });
    cpSync(sample("claude-code.jsonl"), join(home.path, "found/a.jsonl"));
    writeFileSync(join(home.path, "found/b.jsonl"), "notes\n");
    const none = await importFound();
    expect(none.out).toContain("imported 0 sessions");
    expect(none.out).toContain(
      "Ignored\n  1 file from Claude Code, not from Codex\n  1 file from an unknown program\n",
    );
    expect(none.exit).toBe(1);
    cpSync(sample("codex.jsonl"), join(home.path, "found/c.jsonl"));
    expect(await importFound()).toMatchObject({
      out: expect.stringContaining("imported 1 session "),
      exit: 0,
    });
  });
});

describe("importing exports of Skein", () => {
  const at = (dir: string, ...args: string[]) => run(args, { cwd: home.path, env: { SKEIN_DIR: dir } });

  test("[NWC22] the export of a session of the same folder is skipped", async () => {
    await cli("send", "session:trip", "repeat hello");
    await cli("sessions", "export", "trip", "--output", "trip.jsonl");
    const { out, exit } = await cli("sessions", "import", "trip.jsonl");
    expect(out).toContain("Skipped\n  1 session: an export of a session that already exists here\n");
    expect(exit).toBe(0);
  });

  test("[NWC23] an export whose session ID is in use gets another ID, once", async () => {
    for (const dir of ["here", "there"]) await at(dir, "send", "session:trip", `repeat from ${dir}`);
    await at("there", "sessions", "export", "trip", "--output", "trip.jsonl");
    const { out, exit } = await at("here", "sessions", "import", "trip.jsonl", "--json");
    expect(exit).toBe(0);
    const { imported } = JSON.parse(out) as ImportPayload;
    const [copy] = imported;
    expect(copy?.notKept).toContainEqual({
      what: "The session ID was not kept: another session already has it.",
      count: 1,
      example: "trip",
    });
    const shown = await at("here", "sessions", "show", copy?.sessionId ?? "");
    expect(shown.out).toContain("from there");
    const again = await at("here", "sessions", "import", "trip.jsonl");
    expect(again.out).toContain("1 session: already imported");
  });
});

describe("commands of a new user", () => {
  test.each([
    ["a relative store", "# mine\nstore: files:./data # here\nlogging: { level: error }\n"],
    ["JSON", '{ "store": "files:./data", "logging": { "level": "error" } }'],
  ])("[NWC24] a restored folder with %s is found from within", async (_, config) => {
    writeFileSync(join(home.path, "skein.yaml"), config);
    await cli("send", "session:trip", "repeat hello");
    await cli("backup", "bk");
    const { out } = await run(["restore", "bk", "--dir", "restored"], { cwd: home.path });
    expect(out).toContain("store in skein.yaml is now files:.");
    const restored = join(home.path, "restored");
    expect(readFileSync(join(restored, "skein.yaml"), "utf8")).toBe(
      config.replace(/"?files:\.\/data"?/, '"files:."'),
    );
    const listed = await run(["sessions", "ls"], { cwd: restored });
    expect(listed.err).not.toContain("error");
    expect(listed.out).toContain("session:trip ");
  });

  test("send to a name without a session explains how to create one", async () => {
    await cli("send", "main", "repeat hello");
    const { err, exit } = await cli("send", "trip", "repeat hello");
    expect(exit).toBe(1);
    expect(err).toMatch(
      /Session not found: "trip".*use session:trip to create a new session, or see skein sessions ls/,
    );
    expect(await cli("send", "session:trip", "repeat hello")).toMatchObject({ exit: 0 });
    expect(await cli("send", "trip", "repeat again")).toMatchObject({ exit: 0 });
    expect((await cli("sessions", "show", "kyoto")).err).not.toContain("begins");
  });

  test("a missing session is reported as not one of the token's user", async () => {
    const gateway = await wholeGateway({ folder: home });
    try {
      const token = await gateway.token({ scopes: ["read", "write"], userId: "ann" });
      const as = (env: object) =>
        run(["sessions", "reset", "main"], { cwd: home.path, env: { SKEIN_DIR: "root", ...env } });
      expect((await as({ SKEIN_TOKEN: token })).err).toContain("as agent main of user ann");
      expect((await as({})).err).toContain("as agent main of the unnamed user");
    } finally {
      await gateway.close();
    }
  });
});

describe("users of a folder", () => {
  test("users rm fails for a user without any data", async () => {
    await cli("send", "main", "repeat hello", "--user", "ann");
    const { err, exit } = await cli("users", "rm", "nobody", "--yes");
    expect({ err, exit }).toEqual({
      err: expect.stringMatching(/User not found: "nobody"\..* has no sessions or tokens for this user/),
      exit: 1,
    });
    expect(await cli("users", "rm", "ann", "--yes")).toMatchObject({
      out: expect.stringContaining("permanently deleted user ann and 1 session"),
      exit: 0,
    });
    expect(await cli("users", "rm", "ann", "--yes")).toMatchObject({ exit: 1 });
  });

  test("users ls shows a namespace by its name", async () => {
    const skein = await createSkein({ dir: join(home.path, "data"), config: null });
    for (const context of [{ userId: "ann" }, { userId: "ann", namespace: ["acme", "desk"] }])
      await skein.session(context).send("repeat hello").result;
    await skein.close();
    const { out } = await cli("users", "ls");
    expect(out).toMatch(/^ann +1 /m);
    expect(out).toMatch(/^ann in acme\/desk +1 /m);
    const listed = await cli("users", "ls", "--json");
    const { users } = JSON.parse(listed.out) as UserListPayload;
    expect(users.map(({ userId, namespace }) => ({ userId, namespace }))).toEqual(
      expect.arrayContaining([
        { userId: "ann", namespace: undefined },
        { userId: "ann", namespace: ["acme", "desk"] },
      ]),
    );
    expect((await cli("sessions", "ls", "--all-users")).out).toMatch(/^ann in acme\/desk /m);
  });
});

test("the command that init --dir suggests reads the new file", async () => {
  writeFileSync(join(home.path, "skein.yaml"), "logging: { level: error }\n");
  const started = await run(["init", "--dir", "new project"], { cwd: home.path });
  const command = /To check the configuration: skein (.*)$/m.exec(started.out)?.[1] ?? "";
  const words = [...command.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
  const { out } = await run([...words, "--json"], { cwd: home.path });
  expect((JSON.parse(out) as DoctorPayload).configuration.file).toBe(
    join(home.path, "new project/skein.yaml"),
  );
});

describe("errors with a remedy", () => {
  test("a run that timed out names its limit and the setting", async () => {
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      parameters: Type.Object({}),
      execute: (_, { signal }) => once(signal, "abort").then(() => "stopped"),
    });
    const agents = [defineAgent({ id: "main", model: "rehearsal/basic", tools: [wait] })];
    const failing = async (config: ConfigInput, options: SendOptions) => {
      const skein = await createSkein({ memory: true, config, agents });
      const error = await skein
        .session()
        .send("use the tool wait", options)
        .result.catch((reason: Error) => reason.message);
      await skein.close();
      return error;
    };
    const [ofAgent, ofMessage] = await Promise.all([
      failing({ agents: { main: { runTimeoutSeconds: 1 } } }, {}),
      failing({}, { runTimeoutSeconds: 1 }),
    ]);
    expect(ofAgent).toMatch(
      /longer than its limit of 1 s\. Increase agents\.main\.runTimeoutSeconds or defaults/,
    );
    expect(ofMessage).toMatch(/longer than its limit of 1 s\. Increase the message's runTimeoutSeconds/);
  });

  test.each([
    [["sessions", "ls"], 1000],
    [["sessions", "show", "main"], 1000],
    [["sessions", "search", "word"], 50],
    [["users", "ls"], 500],
    [["runs", "ls"], 500],
    [["approvals", "ls"], 500],
    [["outbox", "ls"], 1000],
  ] as const)("[CLI3] %j --limit out of range names the range and the help", async (args, most) => {
    for (const limit of ["0", String(most + 1), "many"]) {
      const { err, exit } = await cli(...args, "--limit", limit);
      const path = args.slice(0, 2).join(" ");
      expect(err).toContain(`Must be a whole number from 1 to ${most}`);
      expect(err).toContain(`Run \`skein ${path} --help\` for usage`);
      expect(exit).toBe(2);
    }
  });

  test("[CLI3] an unknown option names the help of its command", async () => {
    expect((await cli("sessions", "show", "main", "--jsn")).err).toContain("`skein sessions show --help`");
    expect((await cli("send", "main")).err).toContain("`skein send --help`");
    expect((await cli("--jsn")).err).toContain("`skein --help`");
  });

  test("spawn under an agent that is not allowed names the setting", async () => {
    writeFileSync(join(home.path, "skein.yaml"), "agents: { main: {}, reh: {} }\n");
    await cli("send", "main", "repeat hello");
    const { err, exit } = await cli("spawn", "repeat hello", "--under", "reh");
    expect(exit).toBe(1);
    expect(err).toContain("agentId is not allowed for sessions_spawn (allowed: none)");
    expect(err).toContain("An operator can add it to agents.main.subagents.allowAgents");
  });

  test("a failed run is thrown and not logged if the program awaits it", async () => {
    const library = fileURLToPath(new URL("../../src/index.ts", import.meta.url));
    const program = `
      import { createSkein, HookRegistry, HookStop } from ${JSON.stringify(library)};
      const hooks = new HookRegistry(() => undefined);
      hooks.on("before_agent_start", () => { throw new HookStop("not today"); });
      const skein = await createSkein({ memory: true, config: null, hooks });
      const session = skein.session();
      if (process.argv[1] === "wait") await session.send("hello").result.catch(({ message }) => console.log(message));
      else await skein.ended((await session.accept("hello")).runId);
      await skein.close();`;
    const runProgram = async (how: string) => {
      const started = new Started(["--input-type=module", "-e", program, how]);
      expect(await started.end()).toBe(0);
      return started;
    };
    const [waits, leaves] = await Promise.all([runProgram("wait"), runProgram("leave")]);
    expect(waits.out).toContain("not today");
    expect(waits.err).not.toContain("not today");
    expect(leaves.err).toContain("not today");
  });
});

describe("session tools", () => {
  test.each([["foo/bar"], ["rehearsal/nothing"]])(
    "[NWC43] no child is spawned with the model %s",
    async (model) => {
      const skein = await createSkein({ memory: true, config: null });
      const { result } = await skein.callTool("sessions_spawn", { task: "repeat hello", model });
      expect(result).toMatchObject({
        status: "error",
        error: expect.stringMatching(/Provider "foo" is unknown|There is no model rehearsal\/nothing/),
      });
      expect(await skein.runs.list({})).toEqual([]);
      await skein.close();
    },
  );

  test("[OWN15] sessions_send that timed out names the app that the target waits for", async () => {
    const dir = join(home.path, "data");
    const agents = [defineAgent({ id: "desk", model: "rehearsal/basic" })];
    const desk = await createSkein({ dir, config: null, app: "desk", agents });
    await desk.session({ agentId: "desk" }).send("repeat hello").result;
    await desk.close();
    const config = {
      tools: { sessions: { visibility: "all" }, agentToAgent: { enabled: true, allow: ["*"] } },
    } as const;
    const other = await createSkein({ dir, config, app: "other" });
    const args = { sessionKey: "agent:desk:main", message: "repeat hello", timeoutSeconds: 1 };
    const { result } = await other.callTool("sessions_send", args);
    expect(result).toMatchObject({ status: "timeout", waitsForApp: "desk" });
    await other.close();
  });
});

describe("unambiguous output", () => {
  test("sessions repair describes what is wrong with a line", async () => {
    const lines = [userLine("a", null), "no JSON", userLine("c", "b")];
    writeFileSync(join(home.path, "trip.jsonl"), sessionText(...lines));
    const { out } = await cli("sessions", "repair", "trip.jsonl");
    expect(out).toContain("line 3 was left out: it is not valid JSON\n");
    expect(out).toContain("1 entry now attached to the entry before the damage\n");
    expect((await cli("sessions", "repair", "trip.jsonl")).out).toContain("nothing to repair (2 entries)");
  });

  test("doctor shows planned maintenance as not done", async () => {
    writeFileSync(join(home.path, "skein.yaml"), "session: { maintenance: { pruneAfter: 1d } }\n");
    await cli("send", "session:trip", "repeat hello");
    const now = () => Date.now() + 2 * 86_400_000;
    const { out } = await run(["doctor"], { cwd: home.path, env: { SKEIN_DIR: "data" }, now });
    expect(out).toMatch(/Maintenance \(mode: warn, report only\)\n {2}would trash +agent:main:session:trip/);
  });

  test("doctor reports another Skein gateway on the port, and start prints a link", async () => {
    const gateway = await wholeGateway({ folder: home });
    using other = temporaryFolder();
    try {
      const { port } = new URL(gateway.url);
      writeFileSync(join(other.path, "skein.yaml"), `gateway: { port: ${port} }\n`);
      const at = { cwd: other.path, env: { SKEIN_DIR: "data" } };
      const taken = `Port ${port} on 127.0.0.1 is in use by another folder's Skein gateway`;
      expect((await run(["doctor"], at)).out).toContain(taken);
      const { out } = await run(["start", "--dir", gateway.root], { cwd: other.path });
      expect(out.match(/#code=/g)).toHaveLength(1);
      expect(out).toContain("open it in a browser within ten minutes");
    } finally {
      await gateway.close();
    }
  });
});

describe("a webhook of a gateway", () => {
  const secret = "a secret of the desk";

  function signed(body: string): RequestInit {
    const [timestamp, messageId] = [String(Math.floor(Date.now() / 1000)), "m-1"];
    const signature = signatureOf(secret, { timestamp, messageId, body });
    const headers = {
      "content-type": "application/json",
      "x-skein-timestamp": timestamp,
      "x-skein-message-id": messageId,
      "x-skein-signature": signature,
    };
    return { method: "POST", headers, body };
  }

  test("[NWC10] a message ID used for another message is 409, and another method is 405", async () => {
    const skein = await createSkein({
      dir: `${home.path}/data`,
      config: { channels: { desk: { type: "webhook", secret } } },
      workers: false,
    });
    const { handler } = await skein.mount();
    const server = createServer(handler).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/channels/desk/inbound`;
    expect((await fetch(url, signed('{"text":"one","peer":"17"}'))).status).toBe(202);
    const other = await fetch(url, signed('{"text":"two","peer":"17"}'));
    expect(other.status).toBe(409);
    expect(await other.json()).toEqual({
      code: "idempotency_conflict",
      error: expect.stringMatching(/was already used for .*use a new key for a new request/),
    });
    const read = await fetch(url);
    expect(read.status).toBe(405);
    expect(await read.json()).toMatchObject({ code: "invalid_arguments", error: expect.any(String) });
    server.closeAllConnections();
    server.close();
    await skein.close();
  });
});
