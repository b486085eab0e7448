import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { piMessage } from "../messages.ts";
import type { About, Acts, Figures, Job } from "../side.ts";
import { onlyFile, textLength, timed, timedOften, watchMemory } from "../side.ts";
import { stockOfTexts } from "../texts.ts";
import { load as loadPackage } from "./load.ts";

const durability = "none: one appendFileSync per message, never synced, no lock";

export const about: About = { name: "pi", packages: ["@mariozechner/pi-coding-agent"], durability };
/** The newest version whose dependencies can all be installed. */
export const aboutNewer: About = {
  name: "pi 0.87",
  packages: ["@earendil-works/pi-coding-agent"],
  durability,
};

interface SessionManager {
  appendMessage(message: ReturnType<typeof piMessage>): string;
  buildSessionContext(): { messages: readonly unknown[] };
  getBranch(): readonly unknown[];
}

interface Pi {
  SessionManager: {
    create(cwd: string, folder: string): SessionManager;
    open(file: string, folder?: string): SessionManager;
    forkFrom(file: string, cwd: string, folder: string): SessionManager;
    listAll(): Promise<readonly unknown[]>;
  };
}

const cwd = "/home/ann/project";
const loadPi = (job: Job) => loadPackage<Pi>(job.package ?? "");

export const acts: Acts = { append, open, load, fork, page, list };

async function append(job: Job): Promise<Figures> {
  const { folder, count = 1, sessions = 1, warmUp = 500 } = job;
  const { SessionManager } = await loadPi(job);
  const textOf = stockOfTexts(textLength);
  const fill = (manager: SessionManager, amount: number) => {
    for (let index = 0; index < amount; index++)
      manager.appendMessage(piMessage(index, textOf(index), index));
  };
  const make = (name: string) => {
    mkdirSync(join(folder, name), { recursive: true });
    return SessionManager.create(cwd, join(folder, name));
  };
  fill(make("warm-up"), warmUp);
  const managers = Array.from({ length: sessions }, (_, index) => make(`bench-${index}`));
  const ms = await timed(() => {
    for (const manager of managers) fill(manager, count / sessions);
  });
  return { ms, perSecond: count / (ms / 1000), usPerMessage: (ms * 1000) / count };
}

async function open(job: Job): Promise<Figures> {
  const { file = "" } = job;
  const { SessionManager } = await loadPi(job);
  const textOf = stockOfTexts(textLength);
  let manager: SessionManager | undefined;
  let messages = 0;
  const { result: ms, rssMb } = await watchMemory(() =>
    timed(() => {
      manager = SessionManager.open(file);
      messages = manager.buildSessionContext().messages.length;
    }),
  );
  const appendMs = await timed(() => manager?.appendMessage(piMessage(0, textOf(0), 0)));
  return { ms, appendMs, rssMb, messages };
}

async function load(job: Job): Promise<Figures> {
  const { folder } = job;
  const { SessionManager } = await loadPi(job);
  const file = onlyFile(join(folder, "bench-0"), ".jsonl");
  let messages = 0;
  const ms = await timed(() => {
    messages = SessionManager.open(file).buildSessionContext().messages.length;
  });
  return { ms, messages };
}

async function fork(job: Job): Promise<Figures> {
  const { folder } = job;
  const { SessionManager } = await loadPi(job);
  const file = onlyFile(join(folder, "bench-0"), ".jsonl");
  return { ms: await timed(() => SessionManager.forkFrom(file, cwd, join(folder, `fork-${process.pid}`))) };
}

/** Pages are available only for a session that has been read completely. */
async function page(job: Job): Promise<Figures> {
  const { file = "" } = job;
  const { SessionManager } = await loadPi(job);
  let manager: SessionManager | undefined;
  const firstMs = await timed(() => {
    manager = SessionManager.open(file);
    return manager.getBranch().slice(-20);
  });
  const lastMs = await timedOften(5, () => manager?.getBranch().slice(-20));
  return { firstMs, lastMs };
}

/** Returns everything in one call. Filtering is left to the caller. */
async function list(job: Job): Promise<Figures> {
  const { folder } = job;
  process.env.PI_CODING_AGENT_DIR = folder;
  const { SessionManager } = await loadPi(job);
  let listed = 0;
  const ms = await timed(async () => {
    listed = (await SessionManager.listAll()).length;
  });
  return { ms, listed };
}
