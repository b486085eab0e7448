import { cpSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ChatMessage } from "../../src/entry-ai-sdk.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { BrowserChat, lineOfMessage } from "../support/browser-chat.ts";
import { run } from "../support/cli.ts";
import { Started } from "../support/cli-process.ts";
import { soon } from "../support/soon.ts";

const root = join(import.meta.dirname, "../..");
const examples = join(root, "examples");
const program = join(root, "scripts/example.ts");

let folder: TemporaryFolder;
const started: Started[] = [];
beforeEach(() => {
  folder = temporaryFolder("skein-example-");
});
afterEach(async () => {
  for (const { child } of started) child.kill("SIGKILL");
  await Promise.all(started.splice(0).map((each) => each.end()));
  folder.remove();
});

/** The commands in the README of an example. */
function commandsOf(name: string): readonly string[] {
  const readme = readFileSync(join(examples, name, "README.md"), "utf8");
  const [, block = ""] = /```sh\n([^`]*)```/.exec(readme) ?? [];
  return block.trim().split("\n");
}

const wordsOf = (command: string) =>
  (command.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));

/** Starts a command of a README, `npm run example …`, with its sessions in a folder of the test. */
function startExample(command: string): Started {
  const [name = "", ...args] = command.replace(/^npm run example /, "").split(" ");
  const env = { HOME: folder.path, SKEIN_DIR: join(folder.path, "root"), PORT: "0" };
  const process = new Started([program, name, ...args], env, { cwd: root });
  started.push(process);
  return process;
}

async function runExample(command: string): Promise<string> {
  const process = startExample(command);
  expect({ exit: await process.end(), err: process.err }).toMatchObject({ exit: 0 });
  return process.out;
}

test("every example has a README and is in the list", () => {
  const names = readdirSync(examples, { withFileTypes: true }).flatMap((each) =>
    each.isDirectory() ? [each.name] : [],
  );
  const list = readFileSync(join(examples, "README.md"), "utf8");
  for (const name of names) expect(list).toContain(`](${name})`);
  for (const name of names.filter((each) => each !== "family"))
    expect(commandsOf(name).length).toBeGreaterThan(0);
});

describe("[EXM1] the research lead", () => {
  const [first = "", second = ""] = commandsOf("research-lead");

  test("combines the answers of its helpers, and finishes after kill -9 without a second helper", async () => {
    const killed = startExample(first);
    await killed.until(/: running\n/);
    killed.child.kill("SIGKILL");
    await killed.end();
    const out = await runExample(first);
    expect(out).toContain("Three helpers are back:");
    expect(out).toContain("4 sessions: main, subagent:");
    expect(await runExample(first)).toContain("4 sessions: main, subagent:");
  });

  test("answers another question", async () => {
    const out = await runExample(second);
    expect(out).toContain("helpers are back:");
    expect(out).toContain("3 sessions: main, subagent:");
  });
});

test("[EXM1] the support desk answers two people, refunds after an approval, and asks billing", async () => {
  const [command = ""] = commandsOf("support-desk");
  const lines = (await runExample(command)).trim().split("\n");
  expect(lines.map((line) => line.split(/: /)[0])).toEqual([
    ...["#support  Ann", "#support  desk"],
    ...["#support  Ben", "#approvals  supervisor", "#support  desk"],
    ...["#support  Ann", "#support  desk"],
    "billing may list 1 session",
  ]);
  expect(lines[4]).toContain("Refunded order A-17.");
  expect(lines[6]).toMatch(/agent:billing:main answered: .*invoice of order A-17/);
});

test.each(commandsOf("coding-team"))("[EXM1] the coding team reviews what it wrote: %s", async (command) => {
  const out = await runExample(command);
  expect(out).toMatch(/^coder \(ok\) in agent:coder:acp:\w+:\n\*\*A function that/m);
  expect(out).toMatch(/^reviewer \(ok\) in agent:reviewer:acp:\w+:/m);
});

describe("[EXM1] the chat app", () => {
  const [command = ""] = commandsOf("chat-app");
  let cookie = "";

  /** Starts the example, and returns what `useChat` does on its page. */
  async function openApp() {
    const process = startExample(command);
    const [, address = ""] = await process.until(/The chat is at (\S+)/);
    const page = await fetch(address);
    expect(await page.text()).toContain('<script type="module" src="/page.js">');
    cookie ||= page.headers.get("set-cookie")?.split(";")[0] ?? "";
    const send: typeof fetch = (input, init) => {
      const { pathname } = new URL(String(input));
      return fetch(`${address}${pathname}`, { ...init, headers: { ...init?.headers, cookie } });
    };
    const load = async () => (await (await send(`${address}/api/chat/trip`)).json()) as ChatMessage[];
    const select = (entryId: string) =>
      send(`${address}/api/chat/trip`, { method: "PATCH", body: JSON.stringify({ entryId }) });
    const stop = () => send(`${address}/api/chat/trip/stream`, { method: "DELETE" });
    const openPage = async () => new BrowserChat("trip", await load(), send);
    return { process, address, load, select, stop, openPage };
  }
  const answerBegun = /^assistant: \*\*The/;

  test("continues an answer after its page was closed, and after kill -9", async () => {
    const { process, openPage } = await openApp();
    const first = await openPage();
    const sent = first.sendMessage({ text: "describe the gardens of Kyoto in 300 seconds" });
    await soon(() => first.lines[1] ?? "").toMatch(answerBegun);
    await first.stop();
    await sent;
    const second = await openPage();
    const resumed = second.resumeStream();
    await soon(() => second.lines[1] ?? "").toMatch(answerBegun);
    process.child.kill("SIGKILL");
    await resumed;
    const { openPage: openAgain, load, stop } = await openApp();
    const third = await openAgain();
    const continued = third.resumeStream();
    await soon(() => third.lines[1] ?? "").toMatch(answerBegun);
    expect((await stop()).status).toBe(204);
    await continued;
    expect((await load()).map(lineOfMessage)).toEqual(third.lines);
  });

  test("keeps the old answer and the old question as branches, only for the browser that asked", async () => {
    const { address, load, select, openPage } = await openApp();
    const page = await openPage();
    await page.sendMessage({ text: "compare trains and buses" });
    await page.regenerate();
    const [question, answer] = await load();
    expect(answer?.metadata?.skein.alternatives).toHaveLength(2);
    await page.sendMessage({ text: "repeat good morning", messageId: question?.id ?? "" });
    const edited = await load();
    expect(edited.map(lineOfMessage)).toEqual(["user: repeat good morning", "assistant: good morning"]);
    const [original = ""] = edited[0]?.metadata?.skein.alternatives ?? [];
    const selected = (await (await select(original)).json()) as ChatMessage[];
    expect(selected).toEqual([question, answer].map((each) => expect.objectContaining({ id: each?.id })));
    expect((await fetch(`${address}/api/chat/trip`)).status).toBe(401);
  });
});

test("[EXM1] an OpenClaw folder is imported, searched and continued", async () => {
  const [variable = "", ...commands] = commandsOf("openclaw");
  expect(variable).toBe("export SKEIN_DIR=examples/openclaw/.skein");
  mkdirSync(join(folder.path, "examples"));
  cpSync(join(examples, "openclaw"), join(folder.path, "examples/openclaw"), {
    recursive: true,
    filter: (path) => !path.endsWith(".skein"),
  });
  const outputs: string[] = [];
  for (const command of commands) {
    const { exit, out, err } = await run(wordsOf(command.replace("npm run -s skein -- ", "")), {
      cwd: folder.path,
      home: folder.path,
      env: { SKEIN_DIR: "examples/openclaw/.skein" },
      input: () => ({ stream: Readable.from([]), typed: false }),
    });
    expect({ exit, err }).toMatchObject({ exit: 0 });
    outputs.push(out);
  }
  const [imported, listed, found, tree, answer] = outputs;
  expect(imported).toContain("imported 3 sessions with 10 entries");
  expect(listed).toMatch(/agent:home:telegram:user:4711 .*Ann/);
  expect(found).toContain("The boiler shows error F28.");
  expect(tree).toContain("read_manual");
  expect(answer).toContain("The error F28");
});
