import type {
  CreateTerminalRequest,
  PermissionOption,
  RequestPermissionOutcome,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";
import type { Turn } from "../../../agents/contract.ts";
import type { AcpPermissions } from "../../../config/sections/acp.ts";
import { unlessAborted } from "../../../core/abort.ts";
import type { ToolCallBlock } from "../../../core/messages.ts";
import { isRecord } from "../../../core/shape.ts";
import { cutText } from "../../../core/text.ts";
import { titleText } from "../log/content-text.ts";
import { fitJson } from "../log/fit-json.ts";
import { callKey, lineOf, terminalKeys } from "./command-key.ts";

export type Verdict = "granted" | "refused" | "cancelled";

export interface DeskParts {
  /** Its own among all that there are and were: nobody answers a question of another. */
  readonly id: string;
  readonly policy: AcpPermissions;
  /** The working directory of the session. */
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly approve: Turn["approve"];
  /** What is known of a call by the agent's own id. */
  known(toolCallId: string): ToolCallBlock | null;
  /** Some agents tell of a call by asking for it alone. A promise: too much waits to be written. */
  tell(toolCall: RequestPermissionRequest["toolCall"]): Promise<void> | undefined;
  /** For people, in the session. */
  notice(title: string): void;
  /** A person could not be asked: the turn cannot go on. */
  onFailure(error: unknown): void;
}

/** Of what a person is shown. */
const mostArguments = 16_000;
const mostTitle = 500;
/** Commands that were granted and not started yet. */
const mostGrants = 100;

interface Grant {
  readonly key: string;
  /** `null`: that of the session. */
  readonly folder: string | null;
}

/** Where an agent asks for permission, from a prompt to its end. People are asked one question at a time. */
export class PermissionDesk {
  readonly #parts: DeskParts;
  /** Granted with a call: the terminal that runs it is not asked for again. Each is good for one. */
  readonly #granted: Grant[] = [];
  #asked = 0;
  #refusal: string | null = null;
  #before: Promise<unknown> = Promise.resolve();
  readonly #closing = new AbortController();
  readonly #signal: AbortSignal;
  /** The question that a person is asked, until the turn can go on. */
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(parts: DeskParts) {
    this.#parts = parts;
    this.#signal = AbortSignal.any([parts.signal, this.#closing.signal]);
  }

  /** Nothing more is granted. */
  get isOver(): boolean {
    return this.#signal.aborted;
  }

  /** Takes back what is asked. Resolves when nobody is waited for any more; rejects where the turn cannot go on by itself. */
  async close(): Promise<void> {
    this.#closing.abort(closed);
    await this.#underWay;
  }

  get policy(): AcpPermissions {
    return this.#parts.policy;
  }

  /** What was refused last, and by whom; `null`: nothing was. */
  get refusal(): string | null {
    return this.#refusal;
  }

  async forCall({ toolCall, options }: RequestPermissionRequest): Promise<RequestPermissionOutcome> {
    await this.#parts.tell(toolCall);
    const known = this.#parts.known(toolCall.toolCallId);
    const rawInput = toolCall.rawInput ?? known?.arguments;
    const title =
      toolCall.title === null || toolCall.title === undefined
        ? {}
        : { title: cutText(toolCall.title, mostTitle) };
    const input = rawInput === undefined ? {} : { rawInput: fitJson(rawInput, mostArguments) };
    const kind = toolCall.kind ?? known?.name ?? "other";
    const shown = { ...title, ...input };
    const verdict = this.#canSayYes(options)
      ? await this.#decide(kind, shown)
      : this.#refuseAlways(kind, shown);
    if (verdict === "granted") this.#remember(rawInput);
    return outcomeOf(verdict, options);
  }

  async forTerminal({ command, args = [], cwd, env = [] }: CreateTerminalRequest): Promise<Verdict> {
    // What was granted before the turn was stopped is not begun after.
    if (this.isOver) return "cancelled";
    const folder = cwd === undefined || cwd === null || cwd === this.#parts.cwd ? null : cwd;
    if (env.length === 0 && this.#wasGranted(terminalKeys(command, args), folder)) return "granted";
    const shown = {
      command,
      args,
      ...(folder !== null && { cwd: folder }),
      ...(env.length > 0 && { env }),
    };
    return this.#decide("execute", fitJson(shown, mostArguments) as Record<string, unknown>);
  }

  /** A person says yes to one question: where the agent takes that for all that come, nobody is asked. */
  #canSayYes(options: readonly PermissionOption[]): boolean {
    return this.#parts.policy !== "ask" || options.some(({ kind }) => kind === "allow_once");
  }

  #refuseAlways(name: string, args: Record<string, unknown>): Verdict {
    if (this.isOver) return "cancelled";
    const verdict = this.#refuse(name, args, "the agent offers no yes for this one time");
    this.#parts.notice(this.#refusal ?? "");
    return verdict;
  }

  async #decide(name: string, args: Record<string, unknown>): Promise<Verdict> {
    const { policy } = this.#parts;
    if (this.isOver) return "cancelled";
    if (policy === "allow") return "granted";
    if (policy === "deny") return this.#refuse(name, args, "by acp.permissions: deny");
    const asking = this.#before.then(() => this.#ask(name, args));
    this.#before = asking;
    return asking;
  }

  async #ask(name: string, args: Record<string, unknown>): Promise<Verdict> {
    if (this.isOver) return "cancelled";
    // A yes holds for one question: never for another, whatever ids an agent gives its calls.
    const id = `acp-${this.#parts.id}-${++this.#asked}`;
    const asking = this.#parts.approve({ type: "toolCall", id, name, arguments: args }, this.#signal);
    this.#underWay = asking.catch((error: unknown) => {
      if (error !== closed) throw error;
    });
    this.#underWay.catch(() => undefined); // told here, and to whoever closes
    try {
      const { approved, note } = await unlessAborted(asking, this.#signal);
      return approved ? "granted" : this.#refuse(name, args, byWhom(note));
    } catch (error) {
      if (!this.isOver) this.#parts.onFailure(error);
      return "cancelled";
    }
  }

  #refuse(name: string, args: Record<string, unknown>, by: string): Verdict {
    this.#refusal = `Permission for ${whatOf(name, args)} was denied: ${by}.`;
    return "refused";
  }

  #remember(rawInput: unknown): void {
    const key = isRecord(rawInput) ? callKey(rawInput.command, rawInput.args) : null;
    if (key === null || !isRecord(rawInput) || this.#granted.length >= mostGrants) return;
    const folder = [rawInput.cwd, rawInput.workdir].find((each) => typeof each === "string") ?? null;
    this.#granted.push({ key, folder: folder === this.#parts.cwd ? null : (folder as string | null) });
  }

  /** Told by the command itself and its folder: nothing else says which call a terminal is of. */
  #wasGranted(keys: readonly string[], folder: string | null): boolean {
    const at = this.#granted.findIndex((each) => keys.includes(each.key) && each.folder === folder);
    if (at !== -1) this.#granted.splice(at, 1);
    return at !== -1;
  }
}

/** Why a question is taken back whose turn has ended. */
const closed = new Error("The turn has ended.");

/** In words: its title, else its command, else what kind of thing it is. */
function whatOf(name: string, { title, command, args, rawInput }: Record<string, unknown>): string {
  const line = lineOf(command, args) ?? (isRecord(rawInput) ? lineOf(rawInput.command, rawInput.args) : null);
  const word = [title, line].find((each) => typeof each === "string" && each.trim() !== "");
  return word === undefined ? `a call (${titleText(name, 64)})` : `"${titleText(word, mostTitle)}"`;
}

/** The answer of a person is told as one sentence; within another it has no full stop. */
function byWhom(note: string): string {
  return note.replace(/^It was not approved: /, "").replace(/\.$/, "");
}

const wanted = {
  granted: ["allow_once", "allow_always"],
  refused: ["reject_once"],
  cancelled: [],
} as const;

/** The answer among those that the agent offers; cancelled where it offers none. */
export function outcomeOf(verdict: Verdict, options: readonly PermissionOption[]): RequestPermissionOutcome {
  for (const kind of wanted[verdict]) {
    const option = options.find((each) => each.kind === kind);
    if (option !== undefined) return { outcome: "selected", optionId: option.optionId };
  }
  return { outcome: "cancelled" };
}
