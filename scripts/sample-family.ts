import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { holdsSessions } from "../src/app/folder.ts";
import { openSkein } from "../src/app.ts";
import { oneLine } from "../src/cli/output/terminal.ts";
import { configNames } from "../src/config/find-file.ts";
import type { EntryDraft } from "../src/core/seal.ts";
import { compactSession } from "../src/entry-store.ts";
import { rehearsalModel } from "../src/entry-testing.ts";
import type { SessionHandle, Skein, Turn } from "../src/index.ts";
import { RunError } from "../src/index.ts";

const configText = `# Two agents on the rehearsal model: offline, without a key, and free. docs/rehearsal.md lists what it understands.
# For a real model, set a key such as ANTHROPIC_API_KEY and delete the two lines with "model".
agents:
  main:
    model: rehearsal/basic
  support:
    model: rehearsal/basic
    # Support asks a person before it writes to another session.
    tools: { ask: [sessions_send] }

# Each agent may see the other's sessions and write to them.
tools:
  sessions: { visibility: all }
  agentToAgent: { enabled: true }

# An approval stays open for a week.
approvals: { timeoutSeconds: 604800 }
`;

const longestLine = 100;
/** Small, so that even a short conversation has an older part to summarize. */
const compactionWindow = 2000;

export interface FamilyOptions {
  /** Receives progress messages, one line at a time. */
  say(line: string): void;
  /** The address of a database for the sessions. By default, they are in the folder. */
  readonly store?: string;
  /** The time limit. Unfinished work is left to the next process. */
  readonly limitMs?: number;
}

/**
 * Creates a sample family of sessions in a folder without sessions. Its agents use the rehearsal model even if API keys
 * are set, spawn sub-agents, and send messages to each other. `there` means that the folder already has sessions and
 * nothing was changed.
 */
export async function makeFamily(
  dir: string,
  { say, store, limitMs = 60_000 }: FamilyOptions,
): Promise<"made" | "there"> {
  if (holdsSessions(dir)) return "there";
  const config = writeConfig(dir);
  const clock = new SampleClock();
  // Without retries, the run that is meant to fail does so immediately.
  const skein = await openSkein({
    dir,
    config,
    cwd: dir,
    env: { SKEIN_RETRIES__MAX: "0", SKEIN_STORE: store },
    quiet: true,
    clock,
  });
  const limit = AbortSignal.timeout(limitMs);
  try {
    await holdConversations({ skein, clock, say, limit });
  } catch (error) {
    if (!limit.aborted) throw error;
    say("This takes longer than expected. The next command on this folder continues with the rest.");
  } finally {
    await skein.close();
  }
  return "made";
}

const stepMs = 12;
const idleMs = 9 * 60_000;
const startedMs = 53 * 60_000;

/**
 * The rehearsal model answers within milliseconds. To make the sample look like an hour of work, this clock starts
 * almost an hour ago and advances each time it is read, but never beyond the present.
 */
class SampleClock {
  #at = Date.now() - startedMs;

  now(): number {
    this.#at = Math.min(this.#at + stepMs, Date.now());
    return this.#at;
  }

  /** Lets idle time pass between two conversations. */
  skip(): void {
    this.#at += idleMs;
  }
}

interface Family {
  readonly skein: Skein;
  readonly clock: SampleClock;
  readonly limit: AbortSignal;
  say(line: string): void;
}

/**
 * A small hotel prepares for spring. The scenario has a fork, sub-agents, a message between agents, a compaction, a
 * failure and a pending approval.
 */
async function holdConversations(family: Family): Promise<void> {
  const { skein, clock } = family;
  const support = skein.session({ agentId: "support" });
  const main = skein.session({ agentId: "main" });
  const weather = skein.session({ agentId: "main", sessionId: "weather" });

  await ask(family, support, "describe what the front desk of a small hotel looks after");
  clock.skip();
  const garden = await ask(family, main, "describe the gardens of a small hotel in early spring");
  const first = await ask(family, main, "plan two days for guests who love gardens");
  await main.branch(garden);
  const second = await ask(family, main, "plan two days for a family with small children");
  await labelEntry(family, main, first, "for garden lovers");
  await labelEntry(family, main, second, "for families");
  await main.branch(first);
  clock.skip();
  await ask(family, main, "tell agent:support:main that three guests arrive on the first day of spring");
  await ask(
    family,
    main,
    "spawn three helpers to write a welcome note for spring guests; compare breakfast in the garden versus breakfast inside; plan three days of walks and summarize",
  );
  clock.skip();
  await compact(family, main);
  await ask(family, main, "summarize what is ready for spring");
  // Tells the console that no person wrote the messages up to here.
  await addEntry(family, main, { type: "custom", customType: "skein.sample" });
  clock.skip();
  await ask(family, weather, "research the weather in the first week of spring");
  await ask(family, weather, "fail with status 429");
  await weather.label("weather");
  clock.skip();
  await ask(family, support, "tell agent:main:main that the garden room is ready");
}

/**
 * Sends a message and waits for everything that it starts, or for an approval request. Returns the entry ID of the
 * answer.
 */
async function ask({ skein, say, limit }: Family, session: SessionHandle, text: string): Promise<string> {
  say(`you → ${nameOf(session)}: ${text}`);
  const turn = session.send(text);
  if (await before(limit, asksForApproval(turn))) {
    say("  waits for your approval");
    return "";
  }
  const { reply, entryId = "" } = await before(limit, turn.result).catch((error: unknown) => {
    if (!(error instanceof RunError)) throw error;
    return { reply: `failed: ${error.message}`, entryId: "" };
  });
  for (const line of reply.split("\n").filter(isHeadline)) say(`  ${oneLine(line, longestLine)}`);
  const run = await skein.runs.get(turn.runId);
  if (run !== null) await skein.settled(run.root.rootId, limit);
  return entryId;
}

/** `main` for `agent:main:main`, and `weather` for `agent:main:session:weather`. */
const nameOf = ({ key }: SessionHandle) => key.replace(/^agent:(\w+):main$/, "$1").replace(/^.*:/, "");

/** List items and remarks are omitted here. The page and `sessions show` display them. */
const isHeadline = (line: string) => line.trim() !== "" && !/^(?:- |\*(?!\*))/.test(line);

/** Returns `true` as soon as the turn requests an approval, or `false` if it ends without one. */
async function asksForApproval(turn: Turn): Promise<boolean> {
  for await (const event of turn) if (event.type === "approval") return true;
  return false;
}

async function labelEntry(
  family: Family,
  session: SessionHandle,
  targetId: string,
  label: string,
): Promise<void> {
  if (targetId !== "") await addEntry(family, session, { type: "label", targetId, label });
}

async function addEntry({ skein }: Family, session: SessionHandle, draft: EntryDraft): Promise<void> {
  const record = await session.record();
  if (record === null) return;
  const { agentId, sessionId } = record;
  await skein.store.sessions.append({ agentId }, sessionId, [{ draft }]);
}

async function compact({ skein, say, limit }: Family, session: SessionHandle): Promise<void> {
  const record = await session.record();
  if (record === null) return;
  const { agentId } = record;
  const model = rehearsalModel();
  const outcome = await compactSession({ store: skein.store }, { agentId }, record, {
    summarize: async ({ prompt }) => {
      const { content } = await model.doGenerate({
        prompt: [{ role: "user", content: [{ type: "text", text: prompt }] }],
      });
      return content.map((part) => (part.type === "text" ? part.text : "")).join("");
    },
    contextWindow: compactionWindow,
    mode: "default",
    trigger: "manual",
    signal: limit,
  });
  if (outcome.done)
    say(
      `${nameOf(session)} summarizes its older turns (${outcome.tokensBefore} → ${outcome.tokensAfter} tokens)`,
    );
}

/** An existing file belongs to the user and is kept. */
function writeConfig(dir: string): string {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const there = configNames.map((name) => join(dir, name)).find((path) => existsSync(path));
  if (there !== undefined) return there;
  const file = join(dir, "skein.yaml");
  writeFileSync(file, configText, { flag: "wx" });
  return file;
}

async function before<T>(limit: AbortSignal, doing: Promise<T>): Promise<T> {
  limit.throwIfAborted();
  const late = Promise.withResolvers<never>();
  const stop = () => late.reject(limit.reason);
  limit.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([doing, late.promise]);
  } finally {
    limit.removeEventListener("abort", stop);
  }
}
