import type {
  CreateTerminalRequest,
  PermissionOption,
  RequestPermissionOutcome,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";
import type { Turn } from "../../agents/contract.ts";
import type { AcpPermissions } from "../../config/sections/acp.ts";
import { unlessAborted } from "../../core/concurrency.ts";
import { isRecord } from "../../core/is-record.ts";
import type { ToolCallBlock } from "../../core/messages.ts";
import { cutText } from "../../core/text.ts";
import { fitJson, titleText } from "./tool-content.ts";

export type Verdict = "granted" | "refused" | "cancelled";

export interface PermissionContext {
  /** Unique across all turns, so that an answer can never apply to a question from another turn. */
  readonly id: string;
  readonly policy: AcpPermissions;
  /** The session's working directory. */
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly approve: Turn["approve"];
  /** Finds a call by the agent's ID. */
  findCall(toolCallId: string): ToolCallBlock | null;
  /**
   * Records a call that the agent might announce only in its permission request. Returns a promise if the write queue
   * is full.
   */
  recordCall(toolCall: RequestPermissionRequest["toolCall"]): Promise<void> | undefined;
  /** Adds a notice to the session for people to read. */
  addNotice(title: string): void;
  /** Called if requesting an approval failed. The turn then cannot continue. */
  onFailure(error: unknown): void;
}

type Arguments = Record<string, unknown>;

const maxArgumentChars = 16_000;
const maxTitleChars = 500;
/** The maximum number of approved commands that have not been started yet. */
const maxGrants = 100;

interface Grant {
  readonly key: string;
  /** `null` stands for the session's working directory. */
  readonly folder: string | null;
}

/** The permission requests in one turn. People are asked one question at a time. */
export class PermissionRequests {
  readonly #context: PermissionContext;
  /** Commands that were approved together with their call. Each one can start one terminal without another question. */
  readonly #grants: Grant[] = [];
  #questionCount = 0;
  #refusal: string | null = null;
  #queue: Promise<unknown> = Promise.resolve();
  readonly #closing = new AbortController();
  readonly #signal: AbortSignal;
  /** The pending question. Settles when the turn can continue. */
  #pending: Promise<unknown> = Promise.resolve();

  constructor(context: PermissionContext) {
    this.#context = context;
    this.#signal = AbortSignal.any([context.signal, this.#closing.signal]);
  }

  get isClosed(): boolean {
    return this.#signal.aborted;
  }

  /** Withdraws the pending question. Rejects if the turn cannot continue without an answer. */
  async close(): Promise<void> {
    this.#closing.abort(turnEnded);
    await this.#pending;
  }

  get policy(): AcpPermissions {
    return this.#context.policy;
  }

  /** The last denial and its reason. */
  get refusal(): string | null {
    return this.#refusal;
  }

  async decideCall({ toolCall, options }: RequestPermissionRequest): Promise<RequestPermissionOutcome> {
    await this.#context.recordCall(toolCall);
    const known = this.#context.findCall(toolCall.toolCallId);
    const rawInput = toolCall.rawInput ?? known?.arguments;
    const title = toolCall.title ?? null;
    const shown = {
      ...(title !== null && { title: cutText(title, maxTitleChars) }),
      ...(rawInput !== undefined && { rawInput: fitJson(rawInput, maxArgumentChars) }),
    };
    const kind = toolCall.kind ?? known?.name ?? "other";
    const verdict = this.#canAllowOnce(options)
      ? await this.#decide(kind, shown)
      : this.#refuseAlways(kind, shown);
    if (verdict === "granted") this.#remember(rawInput);
    return permissionOutcome(verdict, options);
  }

  async decideTerminal({ command, args = [], cwd, env = [] }: CreateTerminalRequest): Promise<Verdict> {
    // A permission granted before the turn was stopped must not start anything afterward.
    if (this.isClosed) return "cancelled";
    const folder = cwd === undefined || cwd === null || cwd === this.#context.cwd ? null : cwd;
    if (env.length === 0 && this.#useGrant(terminalKeys(command, args), folder)) return "granted";
    const shown = {
      command,
      args,
      ...(folder !== null && { cwd: folder }),
      ...(env.length > 0 && { env }),
    };
    return this.#decide("execute", fitJson(shown, maxArgumentChars) as Arguments);
  }

  /**
   * A person approves one call at a time. If the agent offers no option for a single call, an approval would also allow
   * all later calls.
   */
  #canAllowOnce(options: readonly PermissionOption[]): boolean {
    return this.#context.policy !== "ask" || options.some(({ kind }) => kind === "allow_once");
  }

  #refuseAlways(name: string, args: Arguments): Verdict {
    if (this.isClosed) return "cancelled";
    const verdict = this.#refuse(name, args, "the agent offers no option to allow it once");
    this.#context.addNotice(this.#refusal ?? "");
    return verdict;
  }

  async #decide(name: string, args: Arguments): Promise<Verdict> {
    const { policy } = this.#context;
    if (this.isClosed) return "cancelled";
    if (policy === "allow") return "granted";
    if (policy === "deny") return this.#refuse(name, args, "by acp.permissions: deny");
    const answer = this.#queue.then(() => this.#ask(name, args));
    this.#queue = answer;
    return answer;
  }

  async #ask(name: string, args: Arguments): Promise<Verdict> {
    if (this.isClosed) return "cancelled";
    // Not the agent's call ID, because an agent can reuse IDs, and an approval is valid for only one question.
    const id = `acp-${this.#context.id}-${++this.#questionCount}`;
    const call = { type: "toolCall", id, name, arguments: args } as const;
    const answer = this.#context.approve(call, { signal: this.#signal });
    this.#pending = answer.catch((error: unknown) => {
      if (error !== turnEnded) throw error;
    });
    this.#pending.catch(() => undefined); // The error is handled below and by the caller of `close()`.
    try {
      const { approved, note } = await unlessAborted(answer, this.#signal);
      return approved ? "granted" : this.#refuse(name, args, refusalReason(note));
    } catch (error) {
      if (!this.isClosed) this.#context.onFailure(error);
      return "cancelled";
    }
  }

  #refuse(name: string, args: Arguments, reason: string): Verdict {
    this.#refusal = `Permission for ${describeCall(name, args)} was denied: ${reason}.`;
    return "refused";
  }

  #remember(rawInput: unknown): void {
    if (!isRecord(rawInput) || this.#grants.length >= maxGrants) return;
    const key = callKey(rawInput.command, rawInput.args);
    if (key === null) return;
    const folder = [rawInput.cwd, rawInput.workdir].find((each) => typeof each === "string") ?? null;
    this.#grants.push({ key, folder: folder === this.#context.cwd ? null : (folder as string | null) });
  }

  /** Matches by command and folder, because a terminal request does not name its call. */
  #useGrant(keys: readonly string[], folder: string | null): boolean {
    const index = this.#grants.findIndex((each) => keys.includes(each.key) && each.folder === folder);
    if (index !== -1) this.#grants.splice(index, 1);
    return index !== -1;
  }
}

const turnEnded = new Error("The turn has ended.");

/** Returns a call's title. Falls back to its command, then to its kind. */
function describeCall(name: string, { title, command, args, rawInput }: Arguments): string {
  const line =
    commandWords(command, args) ??
    (isRecord(rawInput) ? commandWords(rawInput.command, rawInput.args) : null);
  const text = [title, line?.join(" ")].find((each) => typeof each === "string" && each.trim() !== "");
  return text === undefined ? `a call (${titleText(name, 64)})` : `"${titleText(text, maxTitleChars)}"`;
}

/** Turns the note of a denial, which is a whole sentence, into a clause. */
function refusalReason(note: string): string {
  return note.replace(/^(?:A person|No one)\b/, (start) => start.toLowerCase()).replace(/\.$/, "");
}

const optionKinds = {
  granted: ["allow_once", "allow_always"],
  refused: ["reject_once"],
  cancelled: [],
} as const;

/** Returns the agent's option that matches the verdict, or `cancelled` if the agent offers none. */
export function permissionOutcome(
  verdict: Verdict,
  options: readonly PermissionOption[],
): RequestPermissionOutcome {
  for (const kind of optionKinds[verdict]) {
    const option = options.find((each) => each.kind === kind);
    if (option !== undefined) return { outcome: "selected", optionId: option.optionId };
  }
  return { outcome: "cancelled" };
}

/**
 * Returns a key for a command, or `null` if the values do not form a command. Commands with the same key have the same
 * effect. A list of words has the same key as a shell line only if the line consists of plain words that a shell passes
 * on unchanged.
 */
function callKey(command: unknown, args: unknown): string | null {
  const words = commandWords(command, args);
  if (words === null) return null;
  return Array.isArray(command) || words.length > 1 ? wordsKey(words) : lineKey(words[0] ?? "");
}

/**
 * Returns the key of the command itself. If the command is a shell that runs a shell line, also returns the line's key.
 */
function terminalKeys(command: string, args: readonly string[]): readonly string[] {
  if (args.length === 0) return [lineKey(command)];
  const isShell =
    /^(?:.*\/)?(?:ba|z|da)?sh$/.test(command) && args.length === 2 && /^-l?c$/.test(args[0] ?? "");
  return [wordsKey([command, ...args]), ...(isShell ? [lineKey(args[1] ?? "")] : [])];
}

/** Returns `null` if the values do not form a command. */
function commandWords(command: unknown, args: unknown): readonly string[] | null {
  const words = [command, args ?? []].flat();
  return words.length > 0 && words.every((word) => typeof word === "string") ? words : null;
}

function lineKey(line: string): string {
  const isPlain = /^[\w@%+:,./-]+(?: [\w@%+=:,./-]+)*$/.test(line);
  return isPlain ? wordsKey(line.split(" ")) : JSON.stringify(line);
}

function wordsKey(words: readonly string[]): string {
  return JSON.stringify(words);
}
