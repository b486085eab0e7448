import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Scope } from "../../../src/entry-store.ts";
import type { Approval, Run, Skein } from "../../../src/index.ts";
import { createSkein } from "../../../src/index.ts";
import { isThere, processIds, procText, signalTo } from "../proc.ts";
import { skeinProgram } from "../programs.ts";
import { soon } from "../soon.ts";
import { lineOf } from "../text.ts";

export const parentKey = "agent:main:main";

/**
 * A Skein instance whose only ACP agent, `skein`, is another Skein instance on its own folder, run as a real `skein
 * acp` process.
 */
export class JoinedSkeins {
  readonly root: string;
  readonly skein: Skein;

  static async open(more: { readonly inner?: object; readonly acp?: object } = {}): Promise<JoinedSkeins> {
    const root = await realpath(await mkdtemp(join(tmpdir(), "skein-joined-")));
    // The nearest configuration in a parent folder applies, so the outer instance's must not be above the working
    // directory.
    await Promise.all(["work", "inner", "outer"].map((name) => mkdir(join(root, name))));
    const dir = join(root, "inner");
    const inner = { defaults: { model: "rehearsal/basic" }, ...more.inner };
    await writeFile(join(dir, "skein.yaml"), JSON.stringify(inner));
    const agents = { skein: { command: process.execPath, args: [skeinProgram, "acp", "--dir", dir] } };
    const config = join(root, "outer", "skein.yaml");
    await writeFile(config, JSON.stringify({ acp: { permissions: "ask", ...more.acp, agents } }));
    const env = { PATH: process.env.PATH, HOME: root };
    const skein = await createSkein({ dir: join(root, "outer"), config, env, quiet: true });
    await skein.store.sessions.create({ agentId: "main" }, { key: parentKey, cwd: join(root, "work") });
    return new JoinedSkeins(root, skein);
  }

  constructor(root: string, skein: Skein) {
    this.root = root;
    this.skein = skein;
  }

  async call(name: string, args: object): Promise<Record<string, unknown>> {
    return (await this.skein.callTool(name, args, { sessionKey: parentKey })).result as Record<
      string,
      unknown
    >;
  }

  /** Returns a spawn's result. The task is followed literally. */
  spawn(task: string, more: object = {}): Promise<Record<string, unknown>> {
    return this.call("sessions_spawn", { task, runtime: "acp", agentId: "skein", ...more });
  }

  ended(runId: unknown): Promise<Run> {
    return this.skein.ended(String(runId), { timeoutMs: 60_000 }) as Promise<Run>;
  }

  /** Returns one line for each of a child's messages. */
  async lines(sessionKey: unknown): Promise<string[]> {
    return linesOf(this.skein, { agentId: "skein" }, String(sessionKey));
  }

  async ofParent(kind: Run["kind"]): Promise<readonly Run[]> {
    const [parent] = await this.skein.store.sessions.find({ agentId: "main" }, { by: "key", key: parentKey });
    const runs = await this.skein.runs.list({ sessionUid: parent?.uid ?? "" });
    return runs.filter((run) => run.kind === kind);
  }

  async approval(): Promise<Approval> {
    const found: { open: readonly Approval[] } = { open: [] };
    await soon(async () => {
      found.open = await this.skein.approvals.list();
      return found.open.length;
    }).toBe(1);
    return found.open[0] as Approval;
  }

  /** Returns the content of the inner instance's folder once no other process has it open. */
  async within<T>(look: (inner: Skein) => Promise<T>): Promise<T> {
    const options = { dir: join(this.root, "inner"), config: null, quiet: true, workers: false };
    const inner = await createSkein(options);
    try {
      return await look(inner);
    } finally {
      await inner.close();
    }
  }

  /** Returns the inner instance's processes, found by their command lines. */
  get processes(): number[] {
    const dir = `${join(this.root, "inner")}\0`;
    return processIds().filter((pid) => procText(pid, "cmdline").includes(dir) && isThere(pid));
  }

  async untilGone(): Promise<void> {
    await soon(() => this.processes).toEqual([]);
  }

  async close(): Promise<void> {
    await this.skein.close();
    const left = this.processes;
    for (const pid of left) signalTo(pid, "SIGKILL");
    await rm(this.root, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`processes are left: ${left.join(", ")}`);
  }
}

/** Returns one line for each of a session's messages. */
export async function linesOf({ store }: Skein, scope: Scope, key: string): Promise<string[]> {
  const [found] = await store.sessions.find(scope, { by: "key", key });
  const range = { along: "branch", limit: 1000 } as const;
  const page = await store.sessions.page(scope, found?.sessionId ?? "", range);
  return (page?.entries ?? []).filter(({ type }) => type === "message").map(lineOf);
}
