import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";
import { TelegramStandIn } from "./telegram-stand-in.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/chat-platforms.md"), "utf8");
const section = page.split("\n## ").find((text) => text.startsWith("Two agents on a platform")) ?? "";
const [, configuration = ""] = /^```yaml\n([\s\S]*?)^```$/m.exec(section) ?? [];
const commands = [...section.matchAll(/^skein (.*)$/gm)].map(([, words = ""]) => words);

const telegram = new TelegramStandIn();
let folder: TemporaryFolder;
let gateway: WholeGateway;

beforeEach(async () => {
  await telegram.start();
  folder = temporaryFolder("skein-chat-agents-");
  symlinkSync(join(import.meta.dirname, "node_modules"), join(folder.path, "node_modules"));
});
afterEach(async () => {
  try {
    await gateway.close();
  } finally {
    telegram.close();
    folder.remove();
  }
});

/** Starts the configuration of the page with the stand-in's settings. */
async function startGateway(changes: object = {}): Promise<void> {
  const written = { ...(parse(configuration) as { channels: { team: object } }), ...changes };
  const team = { ...written.channels.team, adapter: "telegram", settings: telegram.settings };
  gateway = await wholeGateway({ config: stringify({ ...written, channels: { team } }), folder });
}

async function sendToGroup(text: string): Promise<void> {
  const update = telegram.update({ text: `@skein_bot ${text}`, chat: -100 });
  expect((await telegram.send(`${gateway.url}/channels/team/inbound`, update)).status).toBe(200);
}

/** Everything that was posted to the group, also as an edit. */
function posted(): string {
  return JSON.stringify([...telegram.of("sendMessage"), ...telegram.of("editMessageText")]);
}

async function skein(words: string): Promise<string> {
  const args = (words.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
  const env = { SKEIN_STORE: `files:${gateway.root}` };
  const { out, err } = await run(["--dir", gateway.root, ...args], {
    cwd: folder.path,
    home: folder.path,
    env,
  });
  expect(err).toBe("");
  return out;
}

test("[CHT19] with the configuration of docs/chat-platforms.md, an agent in a group asks another one", async () => {
  await startGateway();
  await sendToGroup("ask agent:workshop:main plan the repair of the printer and wait");
  await soon(posted).toContain("Session not found");
  for (const command of commands) await skein(command);
  await sendToGroup("ask agent:workshop:main plan the repair of the printer and wait");
  await soon(posted).toContain("The repair of the printer");
  await sendToGroup('use the tool sessions_spawn with {"agentId": "workshop", "task": "describe the pump"}');
  await soon(posted).toContain("The pump");
});

test("[CHT20] the channel's agent answers in a group", async () => {
  await startGateway({ agents: { other: {}, desk: {} } });
  await sendToGroup("repeat good morning");
  await soon(posted).toContain("good morning");
  const { body } = await gateway.rpc("sessions.list", { allUsers: true });
  expect(body).toMatchObject({ sessions: [{ key: "agent:desk:team:group:-100" }] });
});
