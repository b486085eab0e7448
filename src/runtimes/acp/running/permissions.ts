import type {
  CreateTerminalRequest,
  PermissionOption,
  RequestPermissionOutcome,
  RequestPermissionRequest,
} from "@agentclientprotocol/sdk/unstable";
import type { AcpPermissions } from "../../../config/sections/acp.ts";
import { hashedId } from "../../../core/hashed-id.ts";
import type { ToolCallBlock } from "../../../core/messages.ts";
import { isRecord } from "../../../core/shape.ts";
import { cutText } from "../../../core/text.ts";
import type { Turn } from "../../contract.ts";
import { unlessAborted } from "../../loop/waits.ts";
import { fitJson } from "../log/fit-json.ts";

export type Verdict = "granted" | "refused" | "cancelled";

export interface DeskParts {
  /** Which prompt of its run it is: what was answered in one is asked again in the next. */
  readonly step: number;
  readonly policy: AcpPermissions;
  readonly signal: AbortSignal;
  readonly approve: Turn["approve"];
  /** What is known of a call by the agent's own id. */
  known(toolCallId: string): ToolCallBlock | null;
  /** Some agents tell of a call by asking for it alone. A promise: too much waits to be written. */
  tell(toolCall: RequestPermissionRequest["toolCall"]): Promise<void> | undefined;
  /** A person could not be asked: the turn cannot go on. */
  onFailure(error: unknown): void;
}

/** Of what a person is shown. */
const mostArguments = 16_000;
const mostTitle = 500;
/** Commands that were granted and not started yet. */
const mostGrants = 100;

/** Where an agent asks for permission, in one turn. People are asked one question at a time. */
export class PermissionDesk {
  readonly #parts: DeskParts;
  /** Granted with a call: the terminal that runs it is not asked for again. Each is good for one. */
  readonly #granted: Granted[] = [];
  readonly #asked = new Map<string, number>();
  #before: Promise<unknown> = Promise.resolve();

  constructor(parts: DeskParts) {
    this.#parts = parts;
  }

  get policy(): AcpPermissions {
    return this.#parts.policy;
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
    const name = toolCall.kind ?? known?.name ?? "other";
    const verdict = await this.#decide(toolCall.toolCallId, name, { ...title, ...input });
    if (verdict === "granted") this.#remember(rawInput);
    return outcomeOf(verdict, options);
  }

  /** Variables and a folder of its own are part of what is asked: with them a command is another one. */
  async forTerminal({ command, args = [], env = [], cwd }: CreateTerminalRequest): Promise<Verdict> {
    if (env.length === 0 && this.#wasGranted(command, args)) return "granted";
    const asked = { command, args, ...(env.length > 0 && { env }), ...(cwd && { cwd }) };
    return this.#decide("terminal", "execute", fitJson(asked, mostArguments) as Record<string, unknown>);
  }

  async #decide(id: string, name: string, args: Record<string, unknown>): Promise<Verdict> {
    const { policy, signal } = this.#parts;
    if (signal.aborted) return "cancelled";
    if (policy !== "ask") return policy === "allow" ? "granted" : "refused";
    const asking = this.#before.then(() => this.#ask(id, name, args));
    this.#before = asking;
    return asking;
  }

  async #ask(toolCallId: string, name: string, args: Record<string, unknown>): Promise<Verdict> {
    const { signal, approve } = this.#parts;
    if (signal.aborted) return "cancelled";
    const call = {
      type: "toolCall",
      id: this.#questionId(toolCallId, name, args),
      name,
      arguments: args,
    } as const;
    try {
      const { approved } = await unlessAborted(approve(call), signal);
      return approved ? "granted" : "refused";
    } catch (error) {
      if (!signal.aborted) this.#parts.onFailure(error);
      return "cancelled";
    }
  }

  /** A yes holds for what was asked, and once: never for another call that an agent gives the same id. */
  #questionId(toolCallId: string, name: string, args: Record<string, unknown>): string {
    const id = `acp-${hashedId(String(this.#parts.step), toolCallId, name, JSON.stringify(args))}`;
    const times = (this.#asked.get(id) ?? 0) + 1;
    this.#asked.set(id, times);
    return times === 1 ? id : `${id}-${times}`;
  }

  #remember(rawInput: unknown): void {
    const granted = isRecord(rawInput) ? grantOf(rawInput.command, rawInput.args) : null;
    if (granted !== null && this.#granted.length < mostGrants) this.#granted.push(granted);
  }

  /** Told by the command itself, alone or as what a shell is given: nothing else says which call a terminal is of. */
  #wasGranted(command: string, args: readonly string[]): boolean {
    const isShell =
      /^(?:.*\/)?(?:ba|z|da)?sh$/.test(command) && args.length === 2 && /^-l?c$/.test(args[0] ?? "");
    const line = isShell ? args[1] : args.length === 0 ? command : null;
    const all = [command, ...args];
    const plain = all.some((word) => /\s/.test(word)) ? null : all.join(" ");
    const words = JSON.stringify(all);
    const at = this.#granted.findIndex(
      (each) => each.words === words || each.line === line || each.line === plain,
    );
    if (at !== -1) this.#granted.splice(at, 1);
    return at !== -1;
  }
}

/** A line is for a shell, words are not: a yes to one is none to the other. */
type Granted =
  | { readonly line: string; readonly words?: never }
  | { readonly words: string; readonly line?: never };

function grantOf(command: unknown, args: unknown): Granted | null {
  if (typeof command === "string" && (args === undefined || args === null)) return { line: command };
  const words = [command, args ?? []].flat();
  if (words.length === 0 || !words.every((word) => typeof word === "string")) return null;
  return { words: JSON.stringify(words) };
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
