import { SkeinError } from "../core/errors.ts";
import { createIdSource } from "../core/ids.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import { thrownText } from "../core/text.ts";
import type { Params } from "../protocol/method-table.ts";
import type { SessionDetailsPayload } from "../protocol/session-details.ts";
import { openStates } from "../runs/states.ts";
import { parseModel } from "../transcript/model-table.ts";
import type { SessionParams } from "./connection/resolve-session.ts";
import { errorCodeOf, fetchTree, resolveEntry } from "./connection/resolve-session.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { pluralize, shortRunId } from "./output/format.ts";
import { printTree } from "./output/print-session.ts";
import type { Terminal } from "./output/terminal.ts";

interface SlashContext {
  readonly session: ChatSession;
  /** Clears the prompt before printing. */
  readonly terminal: Terminal;
  note(text: string): void;
  leave(): void;
  readonly signal?: AbortSignal;
}

type Act = (about: SlashContext, rest: string) => Promise<void>;

export const slashHandlers: Readonly<Record<SlashName, Act>> = {
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

async function branch({ session, note }: SlashContext, rest: string): Promise<void> {
  await session.known();
  const { open, to } = session;
  const entryId =
    rest === "" ? await findEntryBeforeLastMessage(session) : await resolveEntry(open, to, rest);
  await open.calls.call("sessions.branch", { ...to, entryId });
  note(entryId === null ? "at the start of the session" : `continuing from ${shortRunId(entryId)}`);
}

/** Returns the parent of the last user message. */
async function findEntryBeforeLastMessage({ open, to }: ChatSession): Promise<string | null> {
  for (let before: string | undefined; ; ) {
    const range = { ...to, ...present({ before }) };
    const { entries, hasEarlier } = await open.calls.call("sessions.entries", range);
    const message = entries.findLast((entry) => entry.type === "message" && entry.message.role === "user");
    if (message !== undefined) return message.parentId;
    before = entries[0]?.id;
    if (hasEarlier && before !== undefined) continue;
    throw new SkeinError("conflict", {
      problem: "You have not sent any messages on this branch",
      advice: "Specify an entry printed by /tree",
    });
  }
}

async function fork({ session, note }: SlashContext, rest: string): Promise<void> {
  await session.known();
  const { open, to } = session;
  const entryId = rest === "" ? undefined : await resolveEntry(open, to, rest);
  const made = await open.calls.call("sessions.fork", { ...to, ...present({ entryId }) });
  session.moveTo(made);
  note(
    `now in ${displayKey(made.key, open.asker)}, forked from ${displayKey(made.forkedFrom.key, open.asker)}`,
  );
}

async function tree({ session, terminal }: SlashContext): Promise<void> {
  await session.known();
  printTree(terminal, await fetchTree(session.open, session.to));
}

async function compact({ session, note, signal }: SlashContext, rest: string): Promise<void> {
  await session.known();
  const { open, to } = session;
  note("summarizing");
  const instructions = rest === "" ? undefined : rest;
  try {
    const params = { ...to, ...present({ instructions }) };
    const done = await open.calls.call("sessions.compact", params, present({ signal }));
    const now = done.tokensAfter === undefined ? "" : `, now ${done.tokensAfter}`;
    note(`compacted: about ${done.tokensBefore} tokens before${now}`);
  } catch (error) {
    // Nothing has changed, so the chat continues.
    if (!["conflict", "unavailable"].includes(errorCodeOf(error) ?? "")) throw error;
    note(thrownText(error));
  }
}

async function status({ session, terminal }: SlashContext): Promise<void> {
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
    ["id", details?.sessionId ?? "none, because no message has been sent yet"],
    ["model", session.sending.model ?? details?.model ?? agent?.model ?? "the agent's"],
    ["label", details?.label ?? ""],
    ["runs", runs.map(({ runId, state }) => `${shortRunId(runId)} ${state}`).join(", ") || "none"],
    ["asks", approvals.length === 0 ? "" : pluralize(approvals.length, "approval")],
  ];
  const shown = lines.filter(([, text]) => text !== "");
  terminal.out(shown.map(([title, text]) => `  ${title?.padEnd(8)} ${text}\n`).join(""));
}

async function begin({ session, note }: SlashContext): Promise<void> {
  await session.known();
  const { previous } = await session.open.calls.call("sessions.reset", session.to);
  note(`${session.shown} has been reset; the old conversation is now ${previous.key}`);
}

async function model({ session, note }: SlashContext, rest: string): Promise<void> {
  if (rest === "") {
    const details = await session.details();
    note(`model: ${session.sending.model ?? details?.model ?? "the agent's"}`);
    return;
  }
  if (rest !== "-") parseModel(rest);
  await session.known();
  await session.open.calls.call("sessions.patch", { ...session.to, model: rest === "-" ? null : rest });
  note(rest === "-" ? "now using the agent's model" : `now using ${rest}`);
}

/** In the order shown by /help. */
export const slashCommandTable = {
  help: { usage: "/help", about: "list the commands" },
  branch: {
    usage: "/branch [entry]",
    about: "continue from an entry, by default the one before your last message",
  },
  fork: { usage: "/fork [entry]", about: "continue in a new session, forked at an entry" },
  tree: { usage: "/tree", about: "show all branches of the session" },
  compact: { usage: "/compact [instructions]", about: "summarize the older part of the conversation" },
  status: { usage: "/status", about: "show the session, its model, and what is running" },
  new: { usage: "/new", about: "start a new session under the same key; the old session is kept" },
  model: { usage: "/model [provider/model]", about: "show or set this session's model; - resets it" },
  quit: { usage: "/quit", about: "quit (or press Ctrl-D)" },
} as const;

export type SlashName = keyof typeof slashCommandTable;

type Slash =
  | { readonly name: SlashName; readonly rest: string }
  | { readonly name: null; readonly typed: string };

/**
 * Parses a line that starts with a slash, or returns `null` if it is a message. A message that starts with two slashes
 * is sent with a single slash.
 */
export function parseSlash(line: string): Slash | null {
  if (!line.startsWith("/") || line.startsWith("//")) return null;
  const [, word = "", rest = ""] = /^\/(\S*)\s*(.*)$/s.exec(line) ?? [];
  const name = word.toLowerCase();
  if (Object.hasOwn(slashCommandTable, name)) return { name: name as SlashName, rest: rest.trim() };
  return { name: null, typed: word };
}

function slashHelp(): string {
  const rows = Object.values(slashCommandTable);
  const width = Math.max(...rows.map(({ usage }) => usage.length));
  return rows.map(({ usage, about }) => `  ${usage.padEnd(width)}  ${about}\n`).join("");
}

export type Sending = Pick<Params<"sessions.send">, "model" | "thinking">;

/** Reads the images that a message mentions. */
type ReadImages = (
  open: OpenSkeinCalls,
  to: SessionParams,
  message: string,
) => Promise<NonNullable<Params<"sessions.send">["attachments"]>>;

/** A chat's session: the one that currently has the chat's key. */
export class ChatSession {
  readonly open: OpenSkeinCalls;
  readonly sending: Sending;
  readonly #readImages: ReadImages;
  readonly #newId = createIdSource();
  #to: SessionParams;

  constructor(
    open: OpenSkeinCalls,
    to: SessionParams,
    sending: Sending,
    readImages: ReadImages = async () => [],
  ) {
    this.#readImages = readImages;
    this.open = open;
    this.#to = to;
    this.sending = sending;
  }

  /** Sends a message and returns its run ID. */
  async say(message: string): Promise<string> {
    const attachments = await this.#readImages(this.open, this.#to, message);
    const { runId } = await this.open.calls.call("sessions.send", {
      ...this.#to,
      message,
      idempotencyKey: this.#newId(),
      ...this.sending,
      ...(attachments.length === 0 ? {} : { attachments }),
    });
    return runId;
  }

  get to(): SessionParams {
    return this.#to;
  }

  get key(): string {
    return this.#to.key;
  }

  get shown(): string {
    return displayKey(this.key, this.open.asker);
  }

  moveTo({ key }: { readonly key: string }): void {
    this.#to = { ...this.#to, key };
  }

  /** Returns `null` if the session does not exist yet. */
  async details(): Promise<SessionDetailsPayload | null> {
    try {
      return await this.open.calls.call("sessions.get", this.#to);
    } catch (error) {
      if (errorCodeOf(error) === "not_found") return null;
      throw error;
    }
  }

  async known(): Promise<SessionDetailsPayload> {
    const details = await this.details();
    if (details !== null) return details;
    const problem = `${this.shown} has no messages yet`;
    throw new SkeinError("conflict", { problem, advice: "Send a message first" });
  }
}
