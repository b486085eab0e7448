// The outcome of an environment's spawns, derived from the logs, work.db, and the existing processes.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { plannedSpawn } from "./acp-kill-plan.ts";
import { markOf } from "./acp-kill-world.ts";
import { FamilyCount } from "./family-count.ts";
import { isThere, processIds, procText } from "./proc.ts";

type Row = Readonly<Record<string, unknown>>;

export interface WorldCount {
  readonly problems: readonly string[];
  readonly spawns: number;
  /** The number of runs, by outcome. */
  readonly ended: Readonly<Record<string, number>>;
  /** The number of runs announced to their parents in a message. The others were returned as the result of a call. */
  readonly announced: number;
  /** The number of times a run was lost with its process. */
  readonly lost: number;
}

export function countWorld(folder: string): WorldCount {
  const family = new FamilyCount(folder);
  const db = new DatabaseSync(join(folder, "skein/work.db"), { readOnly: true });
  const all = (sql: string): Row[] => db.prepare(sql).all() as Row[];
  const spawns = all("SELECT runs.*, label FROM runs JOIN children USING (run_id)");
  const approvals = all("SELECT 1 FROM approvals WHERE answer IS NULL").length;
  const taken = all("SELECT run_id FROM run_replies WHERE state = 'taken' AND by_run IS NULL");
  const announces = all("SELECT idem FROM runs WHERE kind = 'announce'").map(({ idem }) => idem);
  db.close();
  for (const { agent, session_id } of spawns.filter(isKept))
    family.answersOnce(String(agent), String(session_id));
  const problems = [
    ...family.problems,
    ...family.unanswered,
    ...spawns.flatMap(wrongReply),
    ...promptedTogether(folder),
  ];
  if (approvals > 0) problems.push(`${approvals} approvals are open`);
  const answered = answersIn(folder);
  for (const { run_id } of taken)
    if (!answered.has(run_id)) problems.push(`the end of ${run_id} was taken, and nobody was told`);
  const ended: Record<string, number> = {};
  for (const { state } of spawns) ended[String(state)] = (ended[String(state)] ?? 0) + 1;
  const announced = spawns.filter(({ run_id }) => announces.includes(`announce:${run_id}`)).length;
  const lost = spawns.reduce((sum, row) => sum + Number(row.lost), 0);
  return { problems, spawns: spawns.length, ended, announced, lost };
}

/** Whether the child's session was meant to be kept. */
function isKept({ label }: Row): boolean {
  return plannedSpawn(numberOf(label)).more.cleanup !== "delete";
}

/** A successful child has answered its own task. */
function wrongReply({ run_id, agent, label, state, outcome }: Row): string[] {
  const { reply = "" } = JSON.parse(String(outcome ?? "{}")) as { reply?: string };
  const said = agent === "official" ? "Done." : `Done ${numberOf(label)}.`;
  return state !== "ok" || reply.endsWith(said) ? [] : [`${run_id} (${label}) answered: ${reply}`];
}

const numberOf = (label: unknown) => Number(String(label).slice(1));

/** The runs whose outcome was returned to an external call. */
function answersIn(folder: string): ReadonlySet<unknown> {
  const place = join(folder, "answers");
  const answers = readdirSync(place).map(
    (name) => JSON.parse(readFileSync(join(place, name), "utf8")) as Row,
  );
  return new Set(answers.filter((answer) => "outcome" in answer).map(({ runId }) => runId));
}

export interface StartedAgent {
  readonly pid: number;
  readonly skein: number;
  /** The mark by which the warden finds the agent. */
  readonly mark: string;
}

/** Every agent that reported its start. */
export function startedAgents(folder: string): readonly StartedAgent[] {
  const file = join(folder, "agents");
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => {
    const [pid, skein, mark = ""] = line.split(" ");
    return { pid: Number(pid), skein: Number(skein), mark };
  });
}

/** Agents that, according to their own report, were prompted while another process still had the same session. */
export function promptedTogether(folder: string): readonly string[] {
  const file = join(folder, "together");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

/** Returns an environment's agent processes and their descendants. */
export function agentsAlive(folder: string): number[] {
  return processIds().filter(
    (pid) => procText(pid, "environ").includes(`${markOf(folder)}\0`) && isThere(pid),
  );
}

/** Their wardens. */
export function wardensAlive(folder: string): number[] {
  const marks = new Set(startedAgents(folder).map(({ mark }) => mark));
  return processIds().filter((pid) => {
    const words = procText(pid, "cmdline").split("\0");
    return words.includes("skein-warden") && words.some((word) => marks.has(word)) && isThere(pid);
  });
}
