import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { scriptedAgent } from "../support/acp/script.ts";
import { run } from "../support/cli.ts";

/** External agents on the command line, with a person at another terminal. */

let home = "";

beforeEach(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), "skein-acp-cli-")));
  await mkdir(join(home, "work"));
  const permission = {
    id: "c1",
    title: "Delete it",
    kind: "execute",
    rawInput: { command: "rm it" },
  } as const;
  const agents = {
    twin: scriptedAgent({ sessionsFile: join(home, "sessions.json"), turns: [[{ permission }]] }),
  };
  await writeFile(join(home, "skein.yaml"), JSON.stringify({ acp: { agents } }));
});
afterEach(() => rm(home, { recursive: true, force: true }));

const place = () => ({
  cwd: join(home, "work"),
  home,
  env: { SKEIN_DIR: join(home, "skein"), PATH: process.env.PATH },
});

/** Runs a command and answers its questions as another terminal would. */
async function answered(args: readonly string[], answer: "approve" | "deny") {
  let told = "";
  let answering: Promise<unknown> | null = null;
  const err = (text: string) => {
    told += text;
    const [, id] = /skein runs approve (\S+) \(or deny\)/.exec(told) ?? [];
    if (id !== undefined) answering ??= run(["runs", answer, id], place());
  };
  const printed = await run(args, { ...place(), err });
  await answering;
  return { ...printed, told };
}

describe("an agent that asks for permission", () => {
  test.each([
    ["approve", "(yes)"],
    ["deny", "(no)"],
  ] as const)("[CLI57] spawn reports it, with the command to answer: %s", async (answer, said) => {
    const task = ["spawn", "clean up", "--runtime", "acp", "--under", "twin"];
    const { out, told, exit } = await answered(task, answer);
    expect(told).toMatch(/^note: agent:twin:acp:\w+ requests approval: execute \{"title":"Delete it"/);
    expect(out).toContain(said);
    expect(exit).toBe(0);
  });

  test("[CLI57] a message to its session reports it too", async () => {
    const task = ["spawn", "clean up", "--runtime", "acp", "--under", "twin", "--mode", "session", "--json"];
    const config = join(home, "skein.yaml");
    const { acp } = JSON.parse(await readFile(config, "utf8"));
    await writeFile(config, JSON.stringify({ acp: { ...acp, permissions: "allow" } }));
    const { childSessionKey } = JSON.parse((await run(task, place())).out);
    await writeFile(config, JSON.stringify({ acp }));
    const { out, told } = await answered(["send", childSessionKey, "again"], "approve");
    expect(told).toContain(`${childSessionKey} requests approval: execute`);
    expect(out).toBe("(yes)\n");
  });
});
