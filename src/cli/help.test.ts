import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { scriptedAgent } from "../../test/support/acp/script.ts";
import { family, run } from "../../test/support/cli.ts";
import { seedFolder } from "../../test/support/cli-folder.ts";
import { seedLostRun, seedRuns, seedWaitingRun } from "../../test/support/cli-runs.ts";
import { seedToken } from "../../test/support/cli-tokens.ts";

let home = "";

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-cli-help-"));
  await seedFolder(join(home, "seeded"));
  await seedRuns(join(home, "seeded"));
  await seedLostRun(join(home, "seeded"));
  await seedWaitingRun(join(home, "seeded"));
  await seedToken(join(home, "seeded"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Creates a new folder for a user with Codex. Another program takes the place of Codex here. */
function withCodex(folder: string): string {
  const codex = scriptedAgent({ turns: [[{ say: "Mended." }]] });
  writeFileSync(join(folder, "skein.json"), JSON.stringify({ acp: { agents: { codex } } }));
  return join(folder, "new");
}

const daily = { cron: "@daily", message: "status" };

/** Returns the names that lead to a command and to each of its subcommands, as listed in the help texts. */
async function paths(path: readonly string[] = []): Promise<string[][]> {
  const { out } = await run([...path, "--help"]);
  const [, list = ""] = /\nCommands:\n((?: {2}.*\n)*)/.exec(out) ?? [];
  const names = [...list.matchAll(/^ {2}(\S+)/gm)].map((match) => match[1] as string);
  const below = await Promise.all(
    names.filter((name) => name !== "help").map((name) => paths([...path, name])),
  );
  return [[...path], ...below.flat()];
}

/** Splits a line into words like a shell, with single quotes around JSON. */
function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map((match) => match.slice(1).join(""));
}

const all = await paths();

describe("help", () => {
  test("every command is listed", () => {
    expect(all.length).toBeGreaterThan(45);
  });

  test.each(all.map((path) => [path]))(
    "%j is listed with the usage that its own help shows",
    async (path) => {
      if (path.length === 0) return;
      const { out: own } = await run([...path, "--help"]);
      const { out: list } = await run([...path.slice(0, -1), "--help"]);
      const usage = /^Usage: skein (.*)$/m.exec(own)?.[1]?.slice(path.join(" ").length) ?? "";
      const hasOptions = /\nOptions:\n(?! {2}-h)/.test(own);
      const term = `${path.at(-1)}${usage.replace(/ \[command\]$/, "")}`.replace(
        hasOptions ? "" : / \[options\]/,
        "",
      );
      const listed = list.split("\n").map((line) => line.trim().split(/ {2,}/, 1)[0]);
      expect(listed).toContain(term);
    },
  );

  test.each(all.map((path) => [path]))("%j has examples that work as written", async (path) => {
    const { out, exit } = await run([...path, "--help"]);
    expect(exit).toBe(0);
    const shown = [...out.matchAll(/^ {2}\$ skein (.+)$/gm)].map((match) => words(match[1] as string));
    expect(shown.length).toBeGreaterThan(0);
    // The command that runs until it is stopped and the commands that need it or a database have separate tests.
    const alone = shown.filter(([name]) => !["start", "reload", "link", "store"].includes(name ?? ""));
    for (const [index, args] of alone.entries()) {
      const folder = join(home, [...path, index].join("-"));
      cpSync(join(home, "seeded"), join(folder, "skein"), { recursive: true });
      cpSync(join(family, "main.jsonl"), join(folder, "trip.jsonl"));
      cpSync(family, join(folder, "transcripts"), { recursive: true });
      if (args[0] === "restore")
        await run(["backup", "./backup"], { cwd: folder, env: { SKEIN_DIR: join(folder, "skein") } });
      const place = args.includes("acp") ? withCodex(folder) : join(folder, "skein");
      if (args.includes("schedules"))
        writeFileSync(join(folder, "skein.json"), JSON.stringify({ schedules: { daily } }));
      const done = await run(args, { cwd: folder, env: { SKEIN_DIR: place } });
      expect({ args, err: done.err, exit: done.exit }).toEqual({ args, err: "", exit: 0 });
    }
  });

  test("lists the options that every command has", async () => {
    for (const path of all) {
      const { out } = await run([...path, "--help"]);
      for (const option of ["--dir", "--config", "--user", "--agent", "--json"])
        expect(out).toContain(option);
    }
  });
});
