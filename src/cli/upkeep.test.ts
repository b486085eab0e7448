import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Check } from "typebox/value";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { family, run } from "../../test/support/cli.ts";
import { seedFolder, seedNow } from "../../test/support/cli-folder.ts";
import { acceptIn, withRuns } from "../../test/support/cli-runs.ts";
import { BackupSchema, DoctorSchema } from "../protocol/command-payloads.ts";
import type { Terminal } from "./output/terminal.ts";

let home = "";
let seeded = "";
let dir = "";
let count = 0;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-cli-upkeep-"));
  seeded = join(home, "seeded");
  await seedFolder(seeded);
});
beforeEach(() => {
  dir = join(home, `copy-${count++}`);
  cpSync(seeded, dir, { recursive: true });
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const skein = (args: string[], more: Partial<Terminal> = {}) =>
  // A gateway might be running on the default port.
  run([...args, "--dir", dir], {
    now: () => seedNow,
    cwd: home,
    env: { SKEIN_GATEWAY__PORT: "0" },
    ...more,
  });
const doctor = async (args: string[] = [], more: Partial<Terminal> = {}) => {
  const { out, err, exit } = await skein(["doctor", "--json", ...args], more);
  const found = JSON.parse(out);
  expect({ fits: Check(DoctorSchema, found), err }).toEqual({ fits: true, err: "" });
  return { ...found, exit };
};

describe("doctor", () => {
  test("reports no problems for a healthy folder, and does not change it", async () => {
    const before = readFileSync(join(dir, "agents/main/sessions/trip.log.jsonl"));
    const { ok, exit, folder, findings, configuration, node } = await doctor();
    expect({ ok, exit, findings }).toEqual({ ok: true, exit: 0, findings: [] });
    expect(folder).toEqual({ path: dir, from: "--dir", exists: true });
    expect(configuration.effective).toContain("durability: full # default");
    expect(node.ok).toBe(true);
    expect(readFileSync(join(dir, "agents/main/sessions/trip.log.jsonl"))).toEqual(before);
  });

  test("only changed settings are shown, at the end; --all shows every setting", async () => {
    const config = join(home, "few.yaml");
    writeFileSync(config, "lock: { timeoutMs: 5000 }\n");
    const few = await skein(["doctor", "--config", config]);
    expect(few.out).toMatch(/\nMaintenance \(mode: warn, report only\)\n.*\n\nEffective configuration\n/);
    expect(few.out.split("Effective configuration\n")[1]).toBe(
      [
        `  store: files:${dir} # --dir`,
        "  lock:",
        `    timeoutMs: 5000 # ${config}:1`,
        "  gateway:",
        "    port: 0 # SKEIN_GATEWAY__PORT",
        `  all other settings have their defaults; to show all settings: skein doctor --all --dir ${dir} --config ${config}`,
        "",
      ].join("\n"),
    );
    const all = await skein(["doctor", "--all", "--config", config]);
    const { configuration } = await doctor(["--config", config]);
    const shown = all.out.split("Effective configuration\n")[1] ?? "";
    expect(shown.replace(/^ {2}/gm, "")).toBe(configuration.effective);
    expect(shown).toContain("durability: full # default");
  });

  test("repairs problems only with --fix", async () => {
    const sessions = join(dir, "agents/main/sessions");
    cpSync(join(family, "food.jsonl"), join(sessions, "from-pi.jsonl"));
    const found = await doctor();
    expect(found.findings).toMatchObject([{ area: "logs", severity: "note", fixable: true, fixed: false }]);
    const show = ["sessions", "show", "01a10629-3bc0-72c3-9cb3-a7bd8405d63c"];
    expect(existsSync(join(sessions, "from-pi.jsonl"))).toBe(true);
    const told = await skein(["doctor"]);
    expect(told.out).toContain(`to fix what can be fixed automatically: skein doctor --fix --dir ${dir}\n`);
    const mended = (await doctor(["--fix"])).findings;
    expect(mended).toContainEqual(expect.objectContaining({ area: "logs", fixed: true }));
    expect(mended.every(({ fixed }: { fixed: boolean }) => fixed)).toBe(true);
    expect((await skein(show)).exit).toBe(0);
    expect((await doctor()).findings).toMatchObject([
      { severity: "note", what: expect.stringContaining("It was adopted as ") },
    ]);
  });

  test("exits with 1 if an error remains", async () => {
    rmSync(join(dir, "agents/main/sessions/daily.log.jsonl"));
    rmSync(join(dir, "agents/main/sessions/daily.jsonl"));
    const { ok, exit, findings } = await doctor();
    expect({ ok, exit }).toEqual({ ok: false, exit: 1 });
    expect(findings).toContainEqual(
      expect.objectContaining({ severity: "error", what: "The log is missing" }),
    );
    expect((await skein(["doctor"])).exit).toBe(1);
  });

  test("a database of a newer Skein is reported and not changed", async () => {
    const { DatabaseSync } = await import("node:sqlite");
    const work = new DatabaseSync(join(dir, "work.db"));
    work.exec("PRAGMA user_version = 9999");
    work.close();
    const { exit, findings } = await doctor();
    expect(exit).toBe(1);
    expect(findings).toMatchObject([{ area: "databases", severity: "error", fixable: false }]);
  });

  test("a damaged database is rebuilt by --fix, and that is reported", async () => {
    appendFileSync(join(dir, "index.db"), "x");
    writeFileSync(join(dir, "index.db"), "this is no database at all, whatever its name says".repeat(100));
    const { ok, findings } = await doctor(["--fix"]);
    expect(ok).toBe(true);
    expect(findings).toContainEqual(expect.objectContaining({ area: "databases", fixed: true }));
    expect(JSON.parse((await skein(["sessions", "ls", "--json"])).out).count).toBe(6);
  });

  test("mistakes in the configuration are reported with their position, with secrets masked", async () => {
    const config = join(home, "wrong.yaml");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own placeholder
    writeFileSync(config, 'durability: fast\nagents: { main: { cwd: "${WORK}" } }\n');
    const { ok, exit, configuration } = await doctor(["--config", config], { env: { WORK: "/hidden" } });
    expect({ ok, exit }).toEqual({ ok: false, exit: 1 });
    expect(configuration.file).toBe(config);
    expect(configuration.problems[0]).toContain("wrong.yaml:1");
    expect(configuration.effective).not.toContain("/hidden");
    expect((await skein(["sessions", "ls", "--config", config], { env: { WORK: "/hidden" } })).err).toContain(
      "wrong.yaml:1",
    );
  });

  test("lists what maintenance would do, and why, for every user or one user", async () => {
    const config = join(home, "strict.yaml");
    writeFileSync(config, "session: { maintenance: { pruneAfter: 1d } }\n");
    const { maintenance } = await doctor(["--config", config]);
    expect(maintenance.mode).toBe("warn");
    const whose = maintenance.decisions.map(({ userId, key }: { userId?: string; key: string }) => [
      userId,
      key,
    ]);
    expect(whose).toContainEqual(["alice", "agent:main:session:trip"]);
    expect(whose).toContainEqual([undefined, "agent:main:session:trip"]);
    expect(whose.flat()).not.toContain("agent:main:main");
    expect(maintenance.decisions[0].why).toContain("No activity for 2 days");
    const hers = await doctor(["--config", config, "--user", "alice"]);
    expect(hers.maintenance.decisions).toHaveLength(1);
    const { out } = await skein(["doctor", "--config", config]);
    expect(out).toContain("Maintenance (mode: warn, report only)\n");
    expect(out).toMatch(/\n {2}would trash +agent:main:session:trip of alice: No activity/);
  });

  test("a session with an open run is not due for maintenance", async () => {
    const config = join(home, "strict.yaml");
    writeFileSync(config, "session: { maintenance: { pruneAfter: 1d } }\n");
    const due = async () =>
      (await doctor(["--config", config])).maintenance.decisions.flatMap(
        ({ userId, sessionId }: { userId?: string; sessionId: string }) =>
          userId === undefined ? [sessionId] : [],
      );
    expect(await due()).toContain("daily");
    await withRuns(dir, async (runs, store) => {
      const session = await store.sessions.get({}, "daily");
      if (session === null) throw new Error("the seed has it");
      await acceptIn(runs, session, "wait for it", "k1");
    });
    const left = await due();
    expect(left).not.toContain("daily");
    expect(left).toContain("trip");
  });

  test("[CLI16] a missing folder is not an error, and is not created", async () => {
    const missing = join(home, "missing");
    const { out, exit } = await run(["doctor", "--dir", missing], { cwd: home });
    expect(exit).toBe(0);
    expect(out).toContain(`${missing} (--dir): no sessions yet`);
    expect(existsSync(missing)).toBe(false);
  });
});

describe("the configuration report", () => {
  test("names the folder, the agent's place, and whether all share one session", async () => {
    const place = join(home, "project");
    mkdirSync(join(place, "deep"), { recursive: true });
    const text = `store: files:${dir}\nagents: { research: { cwd: /srv } }\nsession: { scope: global }\n`;
    writeFileSync(join(place, "skein.yaml"), text);
    const here = { cwd: join(place, "deep") };
    const show = async (args: string[], more: Partial<Terminal> = {}) =>
      JSON.parse((await run([...args, "--json"], { ...here, ...more })).out);
    expect((await show(["sessions", "show", "holiday"])).sessionId).toBe("trip");
    expect((await show(["sessions", "new", "--agent", "research"])).cwd).toBe("/srv");
    expect((await show(["sessions", "new", "main"])).key).toBe("global");
    expect((await show(["sessions", "rm", "main"])).code).toBe("forbidden");
    expect((await show(["sessions", "show", "holiday", "--dir", join(home, "missing")])).code).toBe(
      "not_found",
    );
    expect((await show(["sessions", "ls"], { env: { SKEIN_DIR: join(home, "missing") } })).code).toBe(
      "not_found",
    );
    expect((await show(["sessions", "ls", "--config", "nope.yaml"])).code).toBe("not_found");
  });
});

describe("backup", () => {
  test("[CLG1] copies the folder, with progress, and the copy is usable", async () => {
    const target = join(home, `backup-${count}`);
    const { out, err } = await skein(["backup", target, "--json"], { redraws: true });
    const payload = JSON.parse(out);
    expect(Check(BackupSchema, payload)).toBe(true);
    expect(payload.folder).toBe(target);
    expect(err).toContain("Copying");
    const listed = async (folder: string) => {
      const { sessions } = JSON.parse((await run(["sessions", "ls", "--json", "--dir", folder])).out);
      return sessions.map(({ key, sessionId }: { key: string; sessionId: string }) => [key, sessionId]);
    };
    expect(await listed(target)).toEqual(await listed(dir));
    expect((await run(["sessions", "restore", "old-trip", "--dir", target])).exit).toBe(0);
  });

  test.each([
    ["itself", () => dir],
    ["inside", () => join(dir, "backup")],
    ["full", () => family],
  ])("[CLI2] [CLI3] a target that is %s is refused", async (_, target) => {
    const { err, exit } = await skein(["backup", target()]);
    expect(err).toMatch(/^error: .+\. .+\.\n$/);
    expect(exit).not.toBe(0);
  });
});
