import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { run } from "../support/cli.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const config = [
  "channels:",
  "  tg: { type: chat-sdk, adapter: telegram, settings: { botToken: a, secretToken: b } }",
  '  desk: { type: webhook, secret: "0123456789abcdef0123456789abcdef" }',
  "",
].join("\n");

let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder("skein-doctor-channels-");
});
afterEach(() => folder.remove());

/** Creates packages whose code fails when it is loaded. Without a version, the package is damaged. */
function install(versions: Readonly<Record<string, string>>): void {
  for (const [name, version] of Object.entries(versions)) {
    const place = join(folder.path, "node_modules", name);
    mkdirSync(place, { recursive: true });
    const manifest = version === "" ? "" : JSON.stringify({ name, version, type: "module" });
    writeFileSync(join(place, "package.json"), manifest);
    writeFileSync(join(place, "index.js"), 'throw new Error("loaded");');
  }
}

async function doctor(...args: readonly string[]) {
  writeFileSync(join(folder.path, "skein.yaml"), config);
  const env = { SKEIN_GATEWAY__PORT: "0" };
  return run(["doctor", ...args, "--dir", join(folder.path, "root")], { cwd: folder.path, env });
}

describe.each([
  [
    "missing packages",
    {},
    "needs the packages chat and @chat-adapter/telegram, which are not installed",
    "Run: npm install chat@4 @chat-adapter/telegram@4",
  ],
  [
    "a package of an unsupported version",
    { chat: "4.41.0", "@chat-adapter/telegram": "4.38.9" },
    "cannot use @chat-adapter/telegram 4.38.9, because Skein supports 4.39 or newer, but below 5",
    "Run: npm install @chat-adapter/telegram@4",
  ],
  [
    "a damaged package",
    { chat: "", "@chat-adapter/telegram": "4.39.0" },
    "cannot use chat, because",
    "Run: npm install chat@4",
  ],
] as const)("%s", (_, versions, problem, remedy) => {
  test("[CHT22] doctor reports a chat channel with the command that installs them", async () => {
    install(versions);
    const { findings, ok } = JSON.parse((await doctor("--json")).out);
    expect(ok).toBe(true);
    expect(findings).toMatchObject([
      { area: "channels", file: "channels.tg", what: expect.stringContaining(problem), remedy: `${remedy}.` },
    ]);
    const { out, exit } = await doctor();
    expect(exit).toBe(0);
    expect(out).toMatch(/\nChat channels\n {2}warning +channels\.tg: Channel "tg" \(Telegram\) /);
    expect(out).toContain(remedy);
  });

  test("[CHT23] a gateway that starts logs one warning", async () => {
    install(versions);
    const log = join(folder.path, "gateway.log");
    const logging = `logging: { level: warn, file: ${log} }\n`;
    const gateway = await wholeGateway({ config: `${config}${logging}`, folder });
    await gateway.close();
    const lines = readFileSync(log, "utf8").split("\n");
    expect(lines.filter((line) => line.includes(problem))).toHaveLength(1);
    expect(lines.join("\n")).toContain(remedy);
  });
});

test("[CHT22] doctor lists the versions of packages that a chat channel can use", async () => {
  install({ chat: "4.41.0", "@chat-adapter/telegram": "4.40.2" });
  const { channels, findings } = JSON.parse((await doctor("--json")).out);
  expect(findings).toEqual([]);
  expect(channels).toEqual([
    {
      name: "tg",
      platform: "Telegram",
      packages: [
        { name: "chat", version: "4.41.0" },
        { name: "@chat-adapter/telegram", version: "4.40.2" },
      ],
    },
  ]);
  expect((await doctor()).out).toContain("tg: Telegram, chat 4.41.0, @chat-adapter/telegram 4.40.2\n");
});
