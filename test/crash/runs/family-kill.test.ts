import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FamilyCount } from "../../support/family-count.ts";
import type { FamilySize } from "../../support/family-scenario.ts";
import { familyConfig, openFamily, prepareFamily, setOff } from "../../support/family-scenario.ts";
import { supportProgram } from "../../support/programs.ts";
import { repetitions } from "../../support/repetitions.ts";
import { runSeed, seedTold } from "../../support/run-seed.ts";
import { Chance } from "../../transcript/random.ts";

/** Kills at moments derived from the seed. */
const rounds = repetitions.familyKills;
const mostPoints = repetitions.killPoints;
const mostKills = 9;
/** A family takes about a thousand durable writes. Three kills cover most of them. */
const mostActs = 300;
const child = supportProgram("family-child");
const base = mkdtempSync(join(tmpdir(), "skein-family-"));

beforeAll(async () => {
  const template = join(base, "template");
  mkdirSync(template);
  writeFileSync(join(template, "skein.yaml"), familyConfig);
  const skein = await openFamily(template, "all");
  await prepareFamily(skein);
  await skein.close();
});

afterAll(() => rmSync(base, { recursive: true, force: true }));

function folderFor(name: string): string {
  const folder = join(base, name);
  cpSync(join(base, "template"), folder, { recursive: true });
  return folder;
}

/** Continues a family in a separate process. */
async function goOn(folder: string, size: FamilySize, point?: number) {
  const args = [child, folder, size, ...(point === undefined ? [] : [String(point)])];
  const running = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  running.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  const [code, signal] = await once(running, "close");
  return { said, code, signal };
}

function attachmentsIn(folder: string): string[] {
  return globSync(join(folder, "skein/**/attachments/*/*"));
}

function problemsOf(folder: string): string[] {
  const count = new FamilyCount(folder);
  const { problems } = count;
  count.answersOnce("main", "parent");
  for (const other of ["near", "far"]) count.answersOnce("other", other);
  if (count.parent?.state === "ok") {
    // A transcript does not contain attachments. If the process was killed before they were written, the model is asked
    // for them again.
    const asked = count.results("files", ({ code }) => code === "attachments_content_missing");
    const spawned = setOff.filter((id) => count.results(id, ({ runId }) => typeof runId === "string") === 1);
    if (spawned.length !== setOff.length - asked)
      problems.push(`of ${setOff} there are results of ${spawned}, and ${asked} was asked for again`);
    if (count.children !== 9 - asked) problems.push(`there are ${count.children} children`);
    const yields = count.results("yield", ({ status }) => status === "yielded");
    if (yields > 1) problems.push(`yielded ${yields} times`);
  }
  // A parent that was given up while writing attachments creates no child, and the attachments remain.
  const files = count.parent?.state === "ok" ? attachmentsIn(folder) : [];
  if (files.length > 0) problems.push(`left over: ${files}`);
  return problems;
}

interface Killed {
  readonly kills: number;
  readonly failed: readonly string[];
  /** Whether the parent's turn succeeded. */
  readonly isWell: boolean;
  /** The number of replies received by a waiter. */
  readonly taken: number;
}

/** Kills a family repeatedly, lets it finish, and counts the results. */
async function killedFamily(number: number): Promise<Killed> {
  const folder = folderFor(`family-${number}`);
  const chance = new Chance(runSeed * 1000 + number);
  // A run that is lost four times is given up. Every third family is killed less often than that and finishes
  // everything.
  const most = number % 3 === 0 ? 3 : mostKills;
  for (let kills = 0; ; kills++) {
    const point = kills < most ? chance.below(mostActs) : undefined;
    const { signal, code } = await goOn(folder, "all", point);
    if (signal !== null) continue;
    const found = code === 0 ? problemsOf(folder) : [`it ended with ${code}`];
    const reports = join(folder, "reports.log");
    if (found.length > 0 && existsSync(reports)) found.push(readFileSync(reports, "utf8"));
    const { parent, taken } = new FamilyCount(folder);
    rmSync(folder, { recursive: true, force: true });
    const failed = found.map((each) => `family ${number}: ${each}`);
    return { kills, failed, isWell: parent?.state === "ok", taken };
  }
}

describe("a family that is killed", () => {
  test(`[CRS1] ${rounds} times kill -9 at random: every ended child is announced once, every yield answered once, and nothing is left open`, async () => {
    const families: Killed[] = [];
    const sum = (of: (each: Killed) => number) => families.reduce((all, each) => all + of(each), 0);
    let next = 0;
    const lane = async () => {
      while (sum(({ kills }) => kills) < rounds && families.every(({ failed }) => failed.length === 0))
        families.push(await killedFamily(next++));
    };
    await Promise.all([lane(), lane(), lane()]);
    expect(
      families.flatMap(({ failed }) => failed),
      seedTold,
    ).toEqual([]);
    expect(sum(({ kills }) => kills)).toBeGreaterThanOrEqual(rounds);
    // The expected events have actually happened: turns that succeeded despite the kills, and replies that reached a
    // waiter.
    expect(sum(({ isWell }) => (isWell ? 1 : 0))).toBeGreaterThanOrEqual(Math.floor(families.length / 4));
    expect(sum(({ taken }) => taken)).toBeGreaterThanOrEqual(Math.floor(families.length / 4));
  }, 3_600_000);
});

describe("one spawn", () => {
  test(`[KIL1] kill -9 at up to ${mostPoints} of the durable writes of a spawn, its yield and its announcement: everything happens once`, async () => {
    const counted = await goOn(folderFor("count"), "one");
    const names = JSON.parse(counted.said) as string[];
    expect(names.length).toBeGreaterThan(60);
    const step = Math.max(1, names.length / mostPoints);
    const points = names.flatMap((_, at) =>
      Math.floor(at * step) < names.length ? [Math.floor(at * step)] : [],
    );
    const failed: string[] = [];
    const lane = async () => {
      for (let point = points.shift(); point !== undefined; point = points.shift()) {
        const at = `${point} ${names[point]}`;
        failed.push(...(await killedAt(point)).map((problem) => `${at}: ${problem}`));
      }
    };
    await Promise.all([lane(), lane()]);
    expect(failed).toEqual([]);
  }, 1_800_000);
});

async function killedAt(point: number): Promise<string[]> {
  const folder = folderFor(`point-${point}`);
  const { signal } = await goOn(folder, "one", point);
  const last = signal === null ? null : await goOn(folder, "one");
  if (last !== null && last.code !== 0) return [`it ended with ${last.code}`];
  const count = new FamilyCount(folder);
  const { problems } = count;
  count.answersOnce("main", "parent");
  const { parent, children, told } = count;
  if (parent?.state !== "ok") problems.push(`the parent's run ended as ${parent?.state}`);
  if (children !== 1 || told !== 1) problems.push(`${children} children, told of ${told} times`);
  const roles = count.messagesOf("main", "parent").map(({ role }) => role);
  const whole = ["user", "assistant", "toolResult", "assistant", "toolResult", "user", "assistant"];
  if (JSON.stringify(roles) !== JSON.stringify(whole)) problems.push(`the parent's session has ${roles}`);
  if (problems.length === 0) rmSync(folder, { recursive: true, force: true });
  return problems;
}
