import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeFamily } from "../../src/cli/sample/make-family.ts";
import type { TemporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { family, run } from "../support/cli.ts";

const readme = readFileSync(fileURLToPath(new URL("../../README.md", import.meta.url)), "utf8");
const section = readme.slice(readme.indexOf("## On the command line"));
const commands = [...section.matchAll(/^npm run -s skein -- (.*?)\s+#/gm)].map(([, command = ""]) => command);

let folder: TemporaryFolder;
beforeAll(async () => {
  folder = temporaryFolder();
  cpSync(family, join(folder.path, "examples", "family"), { recursive: true });
  await makeFamily(join(folder.path, ".skein"), { say: () => undefined });
  const projects = join(folder.path, "home", ".claude", "projects", "-work");
  mkdirSync(projects, { recursive: true });
  const line = {
    type: "user",
    uuid: "0b1e3a52-0001-4000-8000-000000000001",
    parentUuid: null,
    sessionId: "0b1e3a52-0000-4000-8000-000000000000",
    timestamp: "2026-01-02T03:04:05.000Z",
    cwd: folder.path,
    message: { role: "user", content: "Where is the key?" },
  };
  writeFileSync(join(projects, `${line.sessionId}.jsonl`), `${JSON.stringify(line)}\n`);
});
afterAll(() => folder[Symbol.dispose]());

/** What a shell makes of a line: quotes and the home folder. */
function words(command: string): string[] {
  const parts = command.match(/"[^"]*"|\S+/g) ?? [];
  return parts.map((part) => part.replaceAll('"', "").replace(/^~/, join(folder.path, "home")));
}

describe("the commands of the README, from top to bottom on the sample family", () => {
  test("[WRD1] the list has them", () => {
    expect(commands.length).toBeGreaterThan(15);
    expect(commands).toContain("sessions search gardens");
  });

  // `start` stays until it is stopped; the tests of the gateway start it by its process.
  for (const command of commands.filter((each) => !each.startsWith("start"))) {
    test(`[WRD1] ${command}`, async () => {
      const { out, err, exit } = await run(words(command), {
        cwd: folder.path,
        home: join(folder.path, "home"),
        env: { SKEIN_DIR: ".skein", SKEIN_GATEWAY__PORT: "0" },
        input: () => ({ stream: Readable.from(["hello\n"]), typed: false }),
      });
      expect({ exit, err }).toMatchObject({ exit: 0 });
      expect(out).not.toBe("");
    });
  }

  test("[WRD1] they left what they say", () => {
    expect(statSync(join(folder.path, "kyoto.html")).size).toBeGreaterThan(1000);
    expect(existsSync(join(folder.path, "agents", "skein.yaml"))).toBe(true);
  });

  test("[WRD2] the curl example has a new idempotency key each time", () => {
    const [example = ""] = /curl [^`]*/.exec(readme) ?? [];
    expect(example).toContain("chat.send");
    expect(example).toContain(`"idempotencyKey": "'$(date +%s)'"`);
  });
});
