import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Approval, Entry, Run, SendOptions, Skein } from "../../../src/index.ts";
import { createSkein, defineAgent } from "../../../src/index.ts";
import { isStillThere, signalTo } from "../proc.ts";
import { soon } from "../soon.ts";
import type { AgentScript } from "./script.ts";
import { scriptedAgent } from "./script.ts";

/** A Skein instance in a folder, with the scripted agent as its only ACP agent, `twin`. */

export interface AcpSkeinOptions {
  readonly script?: AgentScript | ((place: { readonly root: string; readonly cwd: string }) => AgentScript);
  /** Settings for the section `acp`. */
  readonly acp?: Readonly<Record<string, unknown>>;
  /** A program to use instead of the scripted agent. */
  readonly agent?: { readonly command: string; readonly args?: readonly string[] };
  /** The folder of an earlier instance, to continue it. */
  readonly root?: string;
}

export interface AcpSession {
  readonly key: string;
  readonly sessionId: string;
}

export async function openAcpSkein(options: AcpSkeinOptions = {}) {
  const root = options.root ?? (await realpath(await mkdtemp(join(tmpdir(), "skein-acp-"))));
  const cwd = join(root, "work");
  await mkdir(cwd, { recursive: true });
  const pidFile = join(root, "pids");
  const given = typeof options.script === "function" ? options.script({ root, cwd }) : options.script;
  const script = { sessionsFile: join(root, "agent-sessions.json"), pidFile, ...given };
  const config = join(root, "skein.yaml");
  const agents = { twin: options.agent ?? scriptedAgent(script) };
  await writeFile(config, JSON.stringify({ acp: { permissions: "allow", ...options.acp, agents } }));
  const reports: unknown[] = [];
  const skein = await createSkein({
    dir: join(root, "skein"),
    config,
    env: { PATH: process.env.PATH, HOME: root, SECRET_OF_OURS: "not for agents" },
    agents: [defineAgent({ id: "main", model: "rehearsal/echo" })],
    report: (error) => void reports.push(error),
    quiet: true,
  });
  return new AcpSkein(skein, { root, cwd, pidFile, reports });
}

export class AcpSkein {
  readonly skein: Skein;
  readonly root: string;
  readonly cwd: string;
  readonly reports: readonly unknown[];
  readonly #pidFile: string;
  #sessions = 0;

  constructor(
    skein: Skein,
    about: {
      readonly root: string;
      readonly cwd: string;
      readonly pidFile: string;
      readonly reports: unknown[];
    },
  ) {
    this.skein = skein;
    this.root = about.root;
    this.cwd = about.cwd;
    this.#pidFile = about.pidFile;
    this.reports = about.reports;
  }

  async session(
    acp: Readonly<Record<string, string>> = {},
    mode: "run" | "session" = "session",
  ): Promise<AcpSession> {
    this.#sessions++;
    const key = `agent:twin:acp:00000000-0000-4000-8000-${String(this.#sessions).padStart(12, "0")}`;
    const meta = { acp, spawnMode: mode };
    const { sessionId } = await this.skein.store.sessions.create(
      { agentId: "twin" },
      { key, cwd: this.cwd, meta },
    );
    return { key, sessionId };
  }

  handle({ key }: AcpSession) {
    return this.skein.session({ agentId: "twin", sessionKey: key });
  }

  /** Resolves to the run when it has ended. */
  async say(session: AcpSession, text: string, options: SendOptions = {}): Promise<Run> {
    const { runId } = await this.handle(session).accept(text, options);
    return this.skein.ended(runId, { timeoutMs: 150_000 });
  }

  async entries({ sessionId }: AcpSession): Promise<readonly Entry[]> {
    const range = { along: "branch", limit: 1000 } as const;
    return (await this.skein.store.sessions.page({ agentId: "twin" }, sessionId, range))?.entries ?? [];
  }

  async agentSessionId({ sessionId }: AcpSession): Promise<unknown> {
    const record = await this.skein.store.sessions.get({ agentId: "twin" }, sessionId);
    return (record?.meta.acp as Record<string, unknown> | undefined)?.agentSessionId;
  }

  /** Whether the agent has sent this, according to its own record. */
  agentSaid(text: string): boolean {
    const file = join(this.root, "agent-sessions.json");
    return existsSync(file) && readFileSync(file, "utf8").includes(JSON.stringify(text));
  }

  /** The IDs of the agent's sessions. */
  get agentSessions(): string[] {
    const file = join(this.root, "agent-sessions.json");
    return (JSON.parse(readFileSync(file, "utf8")) as [string, unknown][]).map(([id]) => id);
  }

  /** Resolves to the next approval request once there is one. */
  async approval(): Promise<Approval> {
    const found: { open: readonly Approval[] } = { open: [] };
    await soon(async () => {
      found.open = await this.skein.approvals.list();
      return found.open.length;
    }).toBeGreaterThan(0);
    return found.open[0] as Approval;
  }

  /** Returns the processes started by agents that are still alive. */
  get alive(): number[] {
    return this.#stillThere(this.started);
  }

  get started(): number[] {
    if (!existsSync(this.#pidFile)) return [];
    return readFileSync(this.#pidFile, "utf8").split("\n").filter(Boolean).map(Number);
  }

  /** Waits for a limited time. A process that has not exited by then is reported. */
  async untilGone(pids: readonly number[] = this.started): Promise<void> {
    await soon(() => this.#stillThere(pids)).toEqual([]);
  }

  /** Agents and their child processes have our HOME. */
  #stillThere(pids: readonly number[]): number[] {
    return pids.filter((pid) => isStillThere(pid, `HOME=${this.root}\0`));
  }

  /** Closes the instance. Throws if an agent process remains. */
  async close({ keep = false, graceMs = 5000 } = {}): Promise<void> {
    await this.skein.close({ graceMs });
    const left = this.alive;
    for (const pid of left) signalTo(pid, "SIGKILL");
    if (!keep) await rm(this.root, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`processes are left: ${left.join(", ")}`);
  }
}
