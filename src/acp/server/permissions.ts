import type {
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionMode,
} from "@agentclientprotocol/sdk/unstable";
import { SkeinError } from "../../core/errors.ts";
import type { Asked, CallShape } from "./asked-call.ts";
import { ownCall, spawnedCall } from "./asked-call.ts";
import type { Tell } from "./contract.ts";
import type { ToolCalls } from "./tool-calls.ts";

export type ModeId = "ask" | "allow" | "deny";

export const modes: readonly (SessionMode & { readonly id: ModeId })[] = [
  { id: "ask", name: "Ask", description: "Tools that need approval are asked about here." },
  { id: "allow", name: "Allow", description: "Tools that need approval are approved at once." },
  { id: "deny", name: "Deny", description: "Tools that need approval are refused at once." },
];

export function modeOf(id: string): ModeId {
  const found = modes.find((mode) => mode.id === id);
  if (found !== undefined) return found.id;
  const advice = `Use one of ${modes.map((mode) => mode.id).join(", ")}`;
  throw new SkeinError("invalid_arguments", { problem: `There is no mode "${id}"`, advice });
}

interface Open {
  readonly asking: AbortController;
  readonly runId: string | null;
  readonly whose: "own" | "spawned";
}

export interface PermissionPorts {
  /** Puts it to the user; the signal takes the question back. */
  ask(
    request: Omit<RequestPermissionRequest, "sessionId">,
    signal: AbortSignal,
  ): Promise<RequestPermissionResponse>;
  tell: Tell;
  resolve(approvalId: string, answer: "approved" | "denied"): Promise<void>;
  /** Something is open now. */
  onOpen(): void;
  report(error: unknown): void;
}

const options: RequestPermissionRequest["options"] = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "reject", name: "Reject", kind: "reject_once" },
];

/** What a session's tools are waiting for, each asked once. The first answer stands, wherever it is given. */
export class Permissions {
  mode: ModeId = "ask";
  readonly #ports: PermissionPorts;
  readonly #tools: ToolCalls;
  readonly #open = new Map<string, Open>();
  #isClosed = false;

  constructor(ports: PermissionPorts, tools: ToolCalls) {
    this.#ports = ports;
    this.#tools = tools;
  }

  /** Does not wait for the answer. */
  requested(asked: Asked): void {
    // Whoever cannot be asked has not refused, and a mode that nobody sees any more approves nothing.
    if (this.#isClosed || this.#open.has(asked.approvalId)) return;
    const asking = new AbortController();
    const whose = asked.asker === undefined ? "own" : "spawned";
    this.#open.set(asked.approvalId, { asking, runId: asked.runId ?? null, whose });
    this.#ports.onOpen();
    void this.#settle(asked, asking.signal).catch((error: unknown) => this.#ports.report(error));
  }

  /** Somebody else answered, or nobody did in time. */
  resolved(approvalId: string, answer?: "approved" | "denied" | "expired"): void {
    this.#open.get(approvalId)?.asking.abort(answer);
    this.#open.delete(approvalId);
  }

  /** Of the session's own, or of what it spawned, these alone are open: the others were answered while nobody listened. */
  stillOpen(approvalIds: readonly string[], of: Open["whose"]): void {
    for (const [id, { whose }] of [...this.#open])
      if (whose === of && !approvalIds.includes(id)) this.resolved(id);
  }

  get openIds(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** Whether anything of this run is open. */
  isAsking(runId: string | undefined): boolean {
    return runId !== undefined && [...this.#open.values()].some((each) => each.runId === runId);
  }

  /** Nobody is asked any more about the tools of these runs; what is open stays so for others. */
  dismiss(runIds: readonly string[]): void {
    for (const [id, { runId }] of [...this.#open])
      if (runId !== null && runIds.includes(runId)) this.resolved(id);
  }

  /** Nobody is asked any more at all. */
  close(): void {
    this.#isClosed = true;
    for (const id of [...this.#open.keys()]) this.resolved(id);
  }

  async #settle(asked: Asked, signal: AbortSignal): Promise<void> {
    const answer = this.mode === "ask" ? await this.#put(asked, signal) : byMode[this.mode];
    if (signal.aborted) return;
    await this.#ports.resolve(asked.approvalId, answer);
  }

  /** Calls of a spawned session are not shown in this one: such a call is, for as long as it is asked about. */
  async #put(asked: Asked, signal: AbortSignal): Promise<"approved" | "denied"> {
    const { asker } = asked;
    if (asker === undefined) return this.#ask(ownCall(asked, this.#tools), signal);
    const toolCall = spawnedCall(asked, asker);
    const { toolCallId } = toolCall;
    await this.#ports.tell({ sessionUpdate: "tool_call", ...toolCall });
    const answer = signal.aborted ? "denied" : await this.#ask(toolCall, signal);
    const given = signal.aborted ? signal.reason : answer;
    const status = given === "approved" ? "completed" : "failed";
    if (!this.#isClosed) await this.#ports.tell({ sessionUpdate: "tool_call_update", toolCallId, status });
    return answer;
  }

  /** An editor that cancels, or cannot ask, has not allowed it. */
  async #ask(toolCall: CallShape, signal: AbortSignal): Promise<"approved" | "denied"> {
    try {
      const { outcome } = await this.#ports.ask({ toolCall, options }, signal);
      return outcome.outcome === "selected" && outcome.optionId === "allow" ? "approved" : "denied";
    } catch (error) {
      if (!signal.aborted) this.#ports.report(error);
      return "denied";
    }
  }
}

const byMode = { allow: "approved", deny: "denied" } as const;
