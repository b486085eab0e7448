import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { silentTerminal } from "../../test/support/cli.ts";
import { defineAgent } from "../agents/tools/define-agent.ts";
import { defineTool } from "../agents/tools/define-tool.ts";
import { openSkein } from "../app.ts";
import { defaultConfig } from "../config/load.ts";
import { Tokens } from "../gateway/auth/tokens.ts";
import { allHandlers } from "../gateway/methods/handlers.ts";
import { localCallsWithEvents } from "../gateway/methods/local-calls.ts";
import type { App } from "../sessions/app.ts";
import type { Skein } from "../sessions/skein.ts";
import type { FilesStore } from "../store/files/store.ts";
import { Chat } from "./chat-loop.ts";
import { ChatSession } from "./slash-commands.ts";

let home = "";
let skein: Skein;
let inside: App;
let paid = 0;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-chat-"));
  paid = 0;
  const pay = defineTool({
    name: "pay",
    description: "Pays a bill.",
    approval: true,
    execute: () => {
      paid += 1;
      return "done \u001b[2J";
    },
  });
  const agents = [defineAgent({ id: "main", model: "rehearsal/basic", tools: [pay] })];
  skein = await openSkein({ dir: home, config: null, agents, quiet: true }, (opened) => {
    inside = opened;
  });
});
afterEach(async () => {
  await skein.close();
  rmSync(home, { recursive: true, force: true });
});

function chatting(typed = false) {
  const stream = new PassThrough();
  const printed = { out: "", err: "" };
  let interrupt: () => void = () => undefined;
  const terminal = {
    ...silentTerminal(home),
    out: (text: string) => {
      printed.out += text;
    },
    err: (text: string) => {
      printed.err += text;
    },
    input: () => ({ stream, typed }),
    onInterrupt: (listener: () => void) => {
      interrupt = listener;
      return () => undefined;
    },
  };
  const config = defaultConfig(home);
  const loaded = { config, file: null, root: home, sources: new Map(), variable: () => undefined };
  const store = skein.store as FilesStore;
  const tokens = new Tokens(store.work);
  const deps = { ...inside, skein, tokens };
  const open = {
    calls: localCallsWithEvents(allHandlers(deps), deps),
    store,
    asker: { agentId: "main" },
    terminal,
    options: {},
    user: {},
    reader: {},
    userId: null,
    config,
    loaded,
    place: home,
    may: () => true,
    claimedRequests: () => [],
  };
  const session = new ChatSession(open, { key: "agent:main:main" }, {});
  const chat = new Chat(terminal, session, { thinking: false });
  const until = (pattern: RegExp) => expect.poll(() => printed.out + printed.err).toMatch(pattern);
  return { stream, printed, chat, until, interrupt: () => interrupt() };
}

describe("a tool that requires approval, in a chat", () => {
  test("asks inline, and runs after a yes", async () => {
    const { stream, printed, chat, until } = chatting();
    const over = chat.run();
    stream.write("use the tool pay\n");
    await until(/\? pay \{\}: allow\? y or n/);
    stream.write("perhaps\n");
    await until(/allow\?(.|\n)*allow\?/);
    expect(paid).toBe(0);
    stream.write("y\n");
    await until(/← pay: done \\u001b\[2J/);
    stream.end();
    await over;
    expect(paid).toBe(1);
    expect(printed.err).toContain("→ pay {}");
    expect(printed.out + printed.err).not.toContain("\u001b");
  });

  test.each([
    ["a no", "n\n"],
    ["the end of the input", null],
  ])("does not run after %s", async (_, answer) => {
    const { stream, chat, until } = chatting();
    const over = chat.run();
    stream.write("use the tool pay\n");
    await until(/allow\?/);
    if (answer !== null) stream.write(answer);
    stream.end();
    await over;
    expect(paid).toBe(0);
    expect(await skein.approvals.list()).toEqual([]);
  });
});

describe("children in a chat", () => {
  test("approval requests of a child are shown inline too, with its name", async () => {
    const { stream, chat, until } = chatting();
    const over = chat.run();
    stream.write("spawn one helper to use the tool pay\n");
    await until(/\? subagent:\w+: pay \{\}: allow\? y or n/);
    stream.write("y\n");
    await until(/helper is back/);
    stream.end();
    await over;
    expect(paid).toBe(1);
  });

  test("[CLI36] the children of a turn are shown as they run, and the answer after them", async () => {
    const { stream, printed, chat, until } = chatting();
    const over = chat.run();
    stream.write("spawn two helpers to describe the gardens of Kyoto; repeat one two and summarize\n");
    await until(/Two helpers are back/);
    stream.end();
    await over;
    for (const state of ["queued", "running", "ok"])
      expect(printed.err.match(new RegExp(`subagent:\\S+.*${state}`, "g"))?.length).toBeGreaterThanOrEqual(2);
    expect(printed.err).toContain("→ sessions_spawn");
  });
});

describe("compaction in a chat", () => {
  test("/compact summarizes old entries with the session's own model", async () => {
    const handle = skein.session();
    const long = "gardens and temples of Kyoto ".repeat(700);
    for (let turn = 0; turn < 12; turn++) await handle.send(`describe number ${turn} ${long}`).result;
    const outcome = await skein.session().compact();
    expect(outcome).toMatchObject({ done: true });
    const record = await handle.record();
    const context = await skein.store.sessions.context({}, record?.sessionId ?? "");
    expect(context?.messages[0]?.role).toBe("compactionSummary");
  });

  test("/compact is refused while the session is busy", async () => {
    const turn = skein.session().send("be slow for 300 seconds");
    await expect.poll(async () => (await skein.runs.get(turn.runId))?.state).toBe("running");
    await expect(skein.session().compact()).rejects.toMatchObject({ code: "conflict" });
    await turn.abort();
  });
});

describe("Ctrl-C in a chat", () => {
  test("[CLI44] exits at once if no turn runs", async () => {
    const { chat, interrupt } = chatting();
    const over = chat.run();
    interrupt();
    await over;
  });

  test("[CLI44] aborts the running turn, and exits if there is none", async () => {
    const { stream, chat, until, interrupt } = chatting();
    const over = chat.run();
    stream.write("be slow for 300 seconds\n");
    await expect.poll(async () => (await skein.runs.list())[0]?.state).toBe("running");
    interrupt();
    await until(/· aborted/);
    interrupt();
    await over;
    expect((await skein.runs.list()).map(({ state }) => state)).toEqual(["aborted"]);
  });
});
