import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { displayKey } from "../../core/references.ts";
import { thrownText } from "../../core/text.ts";
import { openStates } from "../../runs/states.ts";
import { parseModel } from "../../transcript/parse-model.ts";
import { codeIn, findEntry, wholeTree } from "../connection/resolve-session.ts";
import { counted, shortRun } from "../output/format.ts";
import { printTree } from "../output/print-session.ts";
import type { Terminal } from "../output/terminal.ts";
import type { ChatSession } from "./chat-session.ts";
import type { SlashName } from "./slash.ts";
import { slashHelp } from "./slash.ts";

export interface ActAbout {
  readonly session: ChatSession;
  /** Prints without regard to a prompt: the lines are made room for. */
  readonly terminal: Terminal;
  note(text: string): void;
  leave(): void;
  /** Ends what takes long; left out: nothing does. */
  readonly signal?: AbortSignal;
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
  await session.known();
  const { open, to } = session;
  const entryId = rest === "" ? await beforeLastSaid(session) : await findEntry(open, to, rest);
  await open.calls.call("sessions.branch", { ...to, entryId });
  note(entryId === null ? "at the beginning of the session" : `going on from ${shortRun(entryId)}`);
}

/** Where the session stood when the user said the last thing. */
async function beforeLastSaid({ open, to }: ChatSession): Promise<string | null> {
  for (let before: string | undefined; ; ) {
    const range = { ...to, ...present({ before }) };
    const { entries, hasEarlier } = await open.calls.call("sessions.entries", range);
    const said = entries.findLast((entry) => entry.type === "message" && entry.message.role === "user");
    if (said !== undefined) return said.parentId;
    before = entries[0]?.id;
    if (hasEarlier && before !== undefined) continue;
    throw new SkeinError("conflict", {
      problem: "You have said nothing on this branch",
      advice: "Name an entry, as /tree prints it",
    });
  }
}

async function fork({ session, note }: ActAbout, rest: string): Promise<void> {
  await session.known();
  const { open, to } = session;
  const entryId = rest === "" ? undefined : await findEntry(open, to, rest);
  const made = await open.calls.call("sessions.fork", { ...to, ...present({ entryId }) });
  session.moveTo(made);
  note(
    `now in ${displayKey(made.key, open.asker)}, made from ${displayKey(made.forkedFrom.key, open.asker)}`,
  );
}

async function tree({ session, terminal }: ActAbout): Promise<void> {
  await session.known();
  printTree(terminal, await wholeTree(session.open, session.to));
}

async function compact({ session, note, signal }: ActAbout, rest: string): Promise<void> {
  await session.known();
  const { open, to } = session;
  note("summarising");
  const instructions = rest === "" ? undefined : rest;
  try {
    const params = { ...to, ...present({ instructions }) };
    const done = await open.calls.call("sessions.compact", params, present({ signal }));
    const now = done.tokensAfter === undefined ? "" : `, ${done.tokensAfter} now`;
    note(`compacted: about ${done.tokensBefore} tokens before${now}`);
  } catch (error) {
    // Nothing was written, which is no failure of the chat.
    if (!["conflict", "unavailable"].includes(codeIn(error) ?? "")) throw error;
    note(thrownText(error));
  }
}

async function status({ session, terminal }: ActAbout): Promise<void> {
  const { open, to } = session;
  const { key: sessionKey, ...whose } = to;
  const details = await session.details();
  const { runs, approvals } =
    details === null
      ? { runs: [], approvals: [] }
      : await open.calls.call("runs.list", { ...whose, sessionKey, states: [...openStates] });
  const agent = details === null ? undefined : open.config.agents[details.agentId];
  const lines = [
    ["session", details?.key ?? session.key],
    ["id", details?.sessionId ?? "none yet: nothing was said"],
    ["model", session.sending.model ?? details?.model ?? agent?.model ?? "the agent's"],
    ["label", details?.label ?? ""],
    ["runs", runs.map(({ runId, state }) => `${shortRun(runId)} ${state}`).join(", ") || "none"],
    ["asks", approvals.length === 0 ? "" : counted(approvals.length, "approval")],
  ];
  const shown = lines.filter(([, text]) => text !== "");
  terminal.out(shown.map(([title, text]) => `  ${title?.padEnd(8)} ${text}\n`).join(""));
}

async function begin({ session, note }: ActAbout): Promise<void> {
  await session.known();
  const { previous } = await session.open.calls.call("sessions.reset", session.to);
  note(`${session.shown} begins anew; what was said stands in ${previous.key}`);
}

async function model({ session, note }: ActAbout, rest: string): Promise<void> {
  if (rest === "") {
    const details = await session.details();
    note(`model: ${session.sending.model ?? details?.model ?? "the agent's"}`);
    return;
  }
  if (rest !== "-") parseModel(rest);
  await session.known();
  await session.open.calls.call("sessions.patch", { ...session.to, model: rest === "-" ? null : rest });
  note(rest === "-" ? "the agent's model answers from now on" : `${rest} answers from now on`);
}
