import { readLog } from "../../compose.ts";
import { SkeinError } from "../../core/errors.ts";
import { createIdSource } from "../../core/ids.ts";
import { displayKey } from "../../core/references.ts";
import { nameNew } from "../../sessions/name-new.ts";
import { treeView } from "../../sessions/tree-view.ts";
import { parseModel } from "../../transcript/parse-model.ts";
import { findEntryId } from "../folder/find-entry.ts";
import { counted } from "../output/amounts.ts";
import { printTree } from "../output/print-tree.ts";
import type { Terminal } from "../output/terminal.ts";
import { shortRun } from "../output/waiting.ts";
import type { ChatSession } from "./chat-session.ts";
import type { SlashName } from "./slash.ts";
import { slashHelp } from "./slash.ts";

export interface ActAbout {
  readonly session: ChatSession;
  /** Prints without regard to a prompt: the lines are made room for. */
  readonly terminal: Terminal;
  note(text: string): void;
  leave(): void;
}

type Act = (about: ActAbout, rest: string) => Promise<void>;

/** What each slash command does. What cannot be done is thrown, with what to do. */
export const acts: Readonly<Record<SlashName, Act>> = {
  help: async ({ terminal }) => terminal.out(slashHelp()),
  quit: async ({ leave }) => leave(),
  branch,
  fork,
  tree,
  compact,
  status,
  new: begin,
  model,
};

async function branch({ session, note }: ActAbout, rest: string): Promise<void> {
  const { store, scope } = session.open;
  const record = await session.known();
  const target = rest === "" ? await beforeLastSaid(session) : await findEntryId(session.open, record, rest);
  await store.sessions.branch(scope, record.sessionId, target);
  note(target === null ? "at the beginning of the session" : `going on from ${shortRun(target)}`);
}

/** Where the session stood when the user said the last thing. */
async function beforeLastSaid(session: ChatSession): Promise<string | null> {
  const { store } = session.open;
  const path = (await readLog(store, await session.known())).path();
  const said = path.findLast((entry) => entry.type === "message" && entry.message.role === "user");
  if (said !== undefined) return said.parentId;
  throw new SkeinError("conflict", {
    problem: "You have said nothing on this branch",
    advice: "Name an entry, as /tree prints it",
  });
}

async function fork({ session, note }: ActAbout, rest: string): Promise<void> {
  const { store, scope, asker } = session.open;
  const from = await session.known();
  const at = rest === "" ? from.leafId : await findEntryId(session.open, from, rest);
  const names = nameNew(undefined, { agentId: from.agentId }, { newId: createIdSource() });
  const made = await store.sessions.fork(scope, from.sessionId, at, { ...names, cwd: from.cwd });
  session.moveTo(made);
  note(`now in ${displayKey(made.key, asker)}, made from ${displayKey(from.key, asker)}`);
}

async function tree({ session, terminal }: ActAbout): Promise<void> {
  const record = await session.known();
  printTree(terminal, treeView(await readLog(session.open.store, record), record.key));
}

async function compact({ session, note }: ActAbout, rest: string): Promise<void> {
  const { skein, userId } = session.open;
  await session.known();
  note("summarising");
  const context = { userId, sessionKey: session.key };
  const outcome = await skein.compact(context, rest === "" ? {} : { instructions: rest });
  if (outcome.done)
    note(`compacted: about ${outcome.tokensBefore} tokens before, ${outcome.tokensAfter} now`);
  else note(`not compacted: ${outcome.note}`);
}

async function status({ session, terminal }: ActAbout): Promise<void> {
  const { skein, userId, config } = session.open;
  const record = await session.record();
  const states = ["queued", "running", "waiting", "sleeping"] as const;
  const runs = record === null ? [] : await skein.runs({ sessionUid: record.uid, states }, userId);
  const asked = (await skein.approvals(userId)).filter((each) => each.session.uid === record?.uid);
  const agent = record === null ? undefined : config.agents[record.agentId];
  const lines = [
    ["session", session.key],
    ["id", record?.sessionId ?? "none yet: nothing was said"],
    ["model", session.sending.model ?? record?.meta.model ?? agent?.model ?? "the agent's"],
    ["label", record?.meta.label ?? ""],
    ["runs", runs.map(({ runId, state }) => `${shortRun(runId)} ${state}`).join(", ") || "none"],
    ["asks", asked.length === 0 ? "" : counted(asked.length, "approval")],
  ];
  const shown = lines.filter(([, text]) => text !== "");
  terminal.out(shown.map(([title, text]) => `  ${title?.padEnd(8)} ${text}\n`).join(""));
}

async function begin({ session, note }: ActAbout): Promise<void> {
  const { store, scope } = session.open;
  const { sessionId } = await session.known();
  const { old } = await store.sessions.reset(scope, sessionId);
  note(`${session.shown} begins anew; what was said stands in ${old.key}`);
}

async function model({ session, note }: ActAbout, rest: string): Promise<void> {
  const { store, scope } = session.open;
  if (rest === "") {
    const record = await session.record();
    note(`model: ${session.sending.model ?? record?.meta.model ?? "the agent's"}`);
    return;
  }
  if (rest !== "-") parseModel(rest);
  const { sessionId } = await session.known();
  await store.sessions.patch(scope, sessionId, { model: rest === "-" ? null : rest });
  note(rest === "-" ? "the agent's model answers from now on" : `${rest} answers from now on`);
}
