// An ACP agent for the kill suite that follows the plan in its task. It implements the protocol directly, because many
// of these agents are started. Usage: `acp-kill-agent.ts <folder> <lean | stubborn | early>`
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Blow, Plan, PlanStep } from "./acp-kill-plan.ts";
import { leaveProcess } from "./leave-process.ts";
import { isStillThere, processIds, procText, signalTo } from "./proc.ts";

type Json = Readonly<Record<string, unknown>>;

const [folder = "", name = "lean"] = process.argv.slice(2);
const isStubborn = name === "stubborn";
/** The point at which an agent that dies during startup does so. */
const dies =
  name === "early" ? ["at once", "initialize", "session/new", "session/prompt"][process.pid % 4] : null;
/** The agent's original parent. After the parent is killed, the agent has a different one. */
const skein = process.ppid;

appendFileSync(join(folder, "agents"), `${process.pid} ${skein} ${process.env.SKEIN_CHILD}\n`);
if (isStubborn) {
  process.on("SIGTERM", () => undefined);
  setInterval(() => undefined, 60_000);
}
if (dies === "at once") process.kill(process.pid, "SIGKILL");

const never = new Promise<never>(() => undefined);
const answers = new Map<unknown, (result: Json) => void>();
const children: ChildProcess[] = [];
let cancelled = Promise.withResolvers<"cancelled">();
let asked = 0;

const write = (message: Json) =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

function request(method: string, params: Json): Promise<Json> {
  const id = `own-${asked++}`;
  const { promise, resolve } = Promise.withResolvers<Json>();
  answers.set(id, resolve);
  write({ id, method, params });
  return promise;
}

/** Sessions are stored with the client's messages, one per file, so that the agent can continue them. */
const fileOf = (sessionId: unknown) => join(folder, "sessions", `${sessionId}.json`);
const promptsOf = (sessionId: unknown) => JSON.parse(readFileSync(fileOf(sessionId), "utf8")) as string[];

class Turn {
  readonly #sessionId: string;
  readonly #plan: Plan;
  #calls = 0;

  constructor(sessionId: string, plan: Plan) {
    this.#sessionId = sessionId;
    this.#plan = plan;
  }

  async play(): Promise<Json> {
    const { steps, number } = this.#plan;
    for (const [at, step] of steps.entries()) {
      await this.#fall(at);
      const told = await Promise.race([this.#step(step), isStubborn ? never : cancelled.promise]);
      if (told === "cancelled") return { stopReason: "cancelled" };
    }
    this.#say(`Done ${number}.`);
    await this.#fall(steps.length);
    return { stopReason: "end_turn" };
  }

  /** Executes the planned fault only once, regardless of how often the turn is started. */
  async #fall(at: number): Promise<void> {
    const { blow, number } = this.#plan;
    if (blow === null || at !== this.#plan.at) return;
    if (isFirst(`${number}-${blow}`)) await this.#blow(blow);
  }

  async #blow(blow: Blow): Promise<void> {
    if (blow === "kill_self") process.kill(process.pid, "SIGKILL");
    else if (blow === "term_self") process.kill(process.pid, "SIGTERM");
    else if (blow === "exit") process.exit(7);
    else if (blow === "kill_skein") signalTo(skein, "SIGKILL");
    else if (blow === "kill_skein_unwatched") {
      for (const pid of wardens()) signalTo(pid, "SIGSTOP");
      signalTo(skein, "SIGKILL");
    } else if (blow === "kill_children") for (const child of children) child.kill("SIGKILL");
    else {
      this.#say(`@${blow} ${this.#plan.number}`);
      await (isStubborn ? never : cancelled.promise);
    }
  }

  async #step(step: PlanStep): Promise<void> {
    const { number } = this.#plan;
    const toolCallId = `call-${number}-${process.pid}-${this.#calls++}`;
    const call = { toolCallId, title: `Call of ${number}`, kind: "other", rawInput: { number } };
    if (typeof step === "number") await new Promise((resolve) => void setTimeout(resolve, step));
    else if (step === "say") this.#say(`Words of ${number}. `);
    else if (step === "think") this.#update({ sessionUpdate: "agent_thought_chunk", content: textOf("Hm.") });
    else if (step === "child" || step === "stray") children.push(leaveProcess(step === "stray"));
    else if (step === "file")
      await this.#ask("fs/write_text_file", { path: join(process.cwd(), `f${number}`), content: "x" });
    else if (step === "terminal") await this.#terminal();
    else if (step === "permission")
      await this.#ask("session/request_permission", { toolCall: call, options });
    else this.#update({ sessionUpdate: "tool_call", ...call, status: "in_progress" });
    if (step === "tool" || step === "permission")
      this.#update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed" });
  }

  async #terminal(): Promise<void> {
    const { terminalId } = await this.#ask("terminal/create", { command: "/bin/echo", args: ["hello"] });
    await this.#ask("terminal/wait_for_exit", { terminalId });
    await this.#ask("terminal/release", { terminalId });
  }

  #ask(method: string, params: Json): Promise<Json> {
    return request(method, { sessionId: this.#sessionId, ...params });
  }

  #say(text: string): void {
    this.#update({ sessionUpdate: "agent_message_chunk", content: textOf(text) });
  }

  #update(update: Json): void {
    write({ method: "session/update", params: { sessionId: this.#sessionId, update } });
  }
}

const options = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
const textOf = (text: string) => ({ type: "text", text });

function isFirst(blow: string): boolean {
  try {
    closeSync(openSync(join(folder, "blows", blow), "wx"));
    return true;
  } catch {
    return false; // it has already died at this point
  }
}

function wardens(): number[] {
  return processIds().filter((pid) => {
    const words = procText(pid, "cmdline").split("\0");
    return words.includes("skein-warden") && words.includes(process.env.SKEIN_CHILD ?? "");
  });
}

/** Reports another process that still has the session. Two agents in one folder would undo each other's work. */
function takeOver(sessionId: string): void {
  const file = join(folder, "sessions", `${sessionId}.pid`);
  const before = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (before !== "" && isStillThere(Number(before), `ACP_KILL=${folder}`) && before !== String(process.pid))
    appendFileSync(join(folder, "together"), `${process.pid} is prompted in ${sessionId} beside ${before}\n`);
  writeFileSync(file, String(process.pid));
}

async function prompted({ sessionId, prompt }: Json): Promise<Json> {
  const texts = (prompt as { text?: string }[]).map(({ text = "" }) => text);
  const all = [...promptsOf(sessionId), texts.join("")];
  writeFileSync(fileOf(sessionId), JSON.stringify(all));
  takeOver(String(sessionId));
  cancelled = Promise.withResolvers();
  const [, plan = "{}"] = /PLAN (\{.*\})/.exec(all.join("\n")) ?? [];
  return new Turn(String(sessionId), JSON.parse(plan) as Plan).play();
}

async function answer(method: unknown, params: Json): Promise<Json> {
  if (method === dies) process.kill(process.pid, "SIGKILL");
  if (method === "initialize") {
    const agentCapabilities = { loadSession: true, sessionCapabilities: { resume: {} } };
    return { protocolVersion: 1, agentCapabilities, agentInfo: { name, version: "1.0.0" } };
  }
  if (method === "session/prompt") return prompted(params);
  if (method !== "session/new") return {};
  const sessionId = `kept-${randomUUID()}`;
  writeFileSync(fileOf(sessionId), "[]");
  return { sessionId };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line) as Json;
  if (method === undefined) answers.get(id)?.((result ?? {}) as Json);
  else if (id === undefined) cancelled.resolve("cancelled");
  else void answer(method, params as Json).then((told) => write({ id, result: told }));
}
if (!isStubborn) process.exit(0);
