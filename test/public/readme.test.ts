import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeFamily } from "../../scripts/sample-family.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { family, run } from "../support/cli.ts";
import { Started } from "../support/cli-process.ts";
import { skeinInCheckout } from "../support/programs.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const execute = promisify(execFile);
/** The part of curl that the README's command line uses, for machines without curl. */
const curlStandIn = `command -v curl >/dev/null || curl() { node -e '
  const given = process.argv.slice(1);
  const after = (option) => given.filter((_, at) => given[at - 1] === option);
  fetch(given.find((each) => each.startsWith("http")), {
    method: "POST",
    headers: after("-H").map((header) => header.split(": ")),
    body: after("-d")[0],
  }).then(async (answer) => console.log(await answer.text()));
' -- "$@"; }`;

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

/** Parses a line as a shell would, including quotes and the home folder. */
function words(command: string): string[] {
  const parts = command.match(/"[^"]*"|\S+/g) ?? [];
  return parts.map((part) => part.replaceAll('"', "").replace(/^~/, join(folder.path, "home")));
}

describe("the commands of the README, from top to bottom on the sample family", () => {
  test("[WRD1] are in the list", () => {
    expect(commands.length).toBeGreaterThan(15);
    expect(commands).toContain("sessions search gardens");
  });

  // `start` runs until it is stopped and has a separate test.
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

  test("[WRD1] have the described effects", () => {
    expect(statSync(join(folder.path, "kyoto.html")).size).toBeGreaterThan(1000);
    expect(existsSync(join(folder.path, "agents", "skein.yaml"))).toBe(true);
  });

  test("[WRD1] start, as a process, until it is ready", async () => {
    const [command = ""] = commands.filter((each) => each.startsWith("start"));
    // Another gateway might be using the README's port.
    const args = words(command.replace(/--port \d+/, "--port 0"));
    const home = join(folder.path, "home");
    const started = new Started([skeinInCheckout, ...args], { HOME: home }, { cwd: folder.path });
    try {
      const [url] = await started.until(/http:\/\/127\.0\.0\.1:\d+/);
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      started.child.kill("SIGTERM");
      expect(await started.end()).toBe(0);
    } finally {
      started.child.kill("SIGKILL");
    }
  });
});

test("[WRD1] the curl example, run twice in a shell, starts two runs", async () => {
  const home = temporaryFolder();
  const gateway = await wholeGateway({ folder: home });
  try {
    symlinkSync(gateway.root, join(home.path, ".skein"));
    const [example = ""] = /^curl [^`]*/m.exec(readme) ?? [];
    const line = example.replace("http://127.0.0.1:18790", gateway.url);
    const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
    const runIds: unknown[] = [];
    for (let time = 0; time < 2; time++) {
      const { stdout } = await execute("sh", ["-c", `${curlStandIn}\n${line}`], { cwd: home.path, env });
      runIds.push((JSON.parse(stdout) as { runId: string }).runId);
    }
    const { body } = await gateway.rpc("runs.list", {});
    const listed = (body as { runs: { runId: string }[] }).runs.map(({ runId }) => runId);
    expect(listed.toSorted()).toEqual(runIds.toSorted());
    expect(new Set(runIds).size).toBe(2);
  } finally {
    await gateway.close();
    home.remove();
  }
});
