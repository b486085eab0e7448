import type { ContentBlock, RequestPermissionRequest } from "@agentclientprotocol/sdk/unstable";
import type { AcpLink, Turn, TurnEnd } from "../../agents/contract.ts";
import type { AcpPermissions } from "../../config/sections/acp.ts";
import type { Clock } from "../../core/clock.ts";
import { unlessAborted, within } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import { createIdSource } from "../../core/ids.ts";
import type { UserMessage } from "../../core/messages.ts";
import { thrownText } from "../../core/text.ts";
import { RunStopped } from "../../runs/worker.ts";
import type { Agent } from "./agent.ts";
import { failed } from "./errors.ts";
import { PermissionRequests } from "./permission-requests.ts";
import { promptBlocks, withSystemPrompt } from "./prompt-blocks.ts";
import type { TurnLogEnd } from "./turn-log.ts";
import { TurnLog } from "./turn-log.ts";
import type { PromptResponse } from "./turn-outcome.ts";
import { readPromptResponse } from "./turn-outcome.ts";
import { UpdateWriter } from "./update-writer.ts";

/**
 * How long an agent can take to end a canceled turn. Must be less than the five seconds after which a run is abandoned.
 */
const cancelMs = 3000;
/** How long to wait for updates that the agent sent before its response. */
const lastUpdatesMs = 1000;

export const lostProcessText =
  "[Skein] Your process was lost in the middle of this turn. Check what has already been done, then continue.";

export interface AcpTurnOptions {
  readonly turn: Turn;
  readonly link: AcpLink;
  readonly agent: Agent;
  readonly policy: AcpPermissions;
  readonly clock: Clock;
}

/** The state of one prompt until it is answered. */
interface Prompt {
  readonly log: TurnLog;
  readonly writer: UpdateWriter;
  readonly permissions: PermissionRequests;
  readonly signal: AbortSignal;
}

/**
 * One turn of an agent, which consists of one prompt. The agent's response ends the run. Input that arrives before the
 * response starts the next run.
 */
export class AcpTurn {
  readonly #options: AcpTurnOptions;
  /** Set once the agent has responded to the prompt. Later updates do not belong to any turn and are dropped. */
  #isAnswered = false;
  readonly #newId;
  /** Set if the agent failed or did not end its turn in time. The agent must not be prompted again. */
  isBroken = false;

  constructor(options: AcpTurnOptions) {
    this.#options = options;
    this.#newId = createIdSource(options.clock);
  }

  async run(): Promise<TurnEnd> {
    const { link } = this.#options;
    const messages = await link.unanswered();
    // If there are no unanswered messages, an earlier process abandoned this run partway through.
    const wasInterrupted = link.wasBegun || messages.length === 0;
    return this.#prompt(messages, wasInterrupted && link.agentSessionId !== null ? lostProcessText : null);
  }

  async #prompt(messages: readonly UserMessage[], preamble: string | null): Promise<TurnEnd> {
    const { turn, agent } = this.#options;
    await turn.check();
    const blocks = await this.#blocks(messages, preamble);
    const stop = new AbortController();
    const onAbort = () => stop.abort(turn.signal.reason);
    turn.signal.addEventListener("abort", onAbort, { once: true });
    if (turn.signal.aborted) onAbort();
    const prompt = this.#openPrompt(stop);
    this.#isAnswered = false;
    agent.watch({
      permissions: prompt.permissions,
      onUpdate: (update, bytes) => (this.#isAnswered ? undefined : prompt.writer.push(update, bytes)),
    });
    try {
      turn.emit({ type: "step", phase: "asked", step: 1 });
      await turn.hooks.llmInput(messages);
      return await this.#send(blocks, prompt);
    } finally {
      turn.signal.removeEventListener("abort", onAbort);
      agent.watch(null);
      agent.cost = prompt.log.cost;
    }
  }

  #openPrompt(stop: AbortController): Prompt {
    const { turn, link, agent, policy, clock } = this.#options;
    const log = new TurnLog({
      agent: link.agent,
      terminalText: (id) => agent.terminalText(id),
      now: () => clock.now(),
      costBefore: agent.cost,
    });
    const onFailure = (error: unknown) => stop.abort(error);
    const writer = new UpdateWriter(turn, log, onFailure);
    const permissions = new PermissionRequests({
      id: this.#newId(),
      policy,
      cwd: turn.about.cwd,
      signal: stop.signal,
      approve: turn.approve,
      findCall: (id) => log.call(id),
      // Omits the status, which might be older than the last update. Codex sends calls in progress as pending.
      recordCall: ({ status: _, ...call }: RequestPermissionRequest["toolCall"]) =>
        writer.push({ ...call, sessionUpdate: "tool_call_update" }, JSON.stringify(call).length),
      addNotice: (title) =>
        void writer.push({ sessionUpdate: "notice", severity: "warning", title }, title.length),
      onFailure,
    });
    return { log, writer, permissions, signal: stop.signal };
  }

  async #blocks(messages: readonly UserMessage[], preamble: string | null): Promise<ContentBlock[]> {
    const { turn, link, agent } = this.#options;
    const blocks = await promptBlocks(messages, agent.promptCapabilities, (sha256) => link.blob(sha256));
    if (preamble !== null)
      blocks.unshift({ type: "text", text: messages.length === 0 ? preamble : `${preamble}\n\n` });
    if (blocks.length === 0) throw failed(link.agent, "the prompt is empty", "Send some text");
    return withSystemPrompt(blocks, turn.system, agent.system);
  }

  async #send(blocks: ContentBlock[], prompt: Prompt): Promise<TurnEnd> {
    const { turn, link, agent } = this.#options;
    const { writer, signal } = prompt;
    signal.throwIfAborted();
    const answered = agent.prompt(blocks).finally(() => {
      this.#isAnswered = true;
    });
    agent.system = turn.system;
    let response: PromptResponse;
    try {
      response = readPromptResponse(link.agent, await unlessAborted(answered, signal));
      await writer.settled();
      signal.throwIfAborted();
    } catch (error) {
      const cause = signal.aborted ? signal.reason : error;
      await (signal.aborted ? this.#stop(answered, prompt) : this.#recordFailure(error, prompt));
      if (cause instanceof SkeinError)
        turn.emit({ type: "step", phase: "answered", step: 1, code: cause.code });
      throw cause;
    }
    return this.#finish(response, prompt);
  }

  /** Called when the agent has ended its turn. */
  async #finish(response: PromptResponse, { log, writer, permissions }: Prompt): Promise<TurnEnd> {
    const { turn, link } = this.#options;
    // Must come first, because a run that is waiting for an approval cannot end.
    const permissionError = await errorOf(permissions.close());
    const { refusal } = permissions;
    const end = log.end({ ...response, ...(refusal !== null && { reason: refusal }) });
    const { usage, stopReason } = end;
    turn.emit({ type: "step", phase: "answered", step: 1, usage, finishReason: stopReason });
    // As with every answer, the usage is charged before the answer is written.
    const chargeError = await errorOf(turn.charge(usage));
    await writer.apply(end.acts);
    const problem = chargeError ?? permissionError;
    if (problem !== null) throw problem.error;
    if (stopReason === "error")
      throw failed(link.agent, errorIn(end), "Read its last message, and change the request");
    if (stopReason === "aborted") throw unrequestedCancel(link.agent, refusal);
    return { kind: "answered", reply: end.reply, entryId: writer.last?.id ?? "" };
  }

  /** Cancels the agent's turn and writes what the agent has sent so far. */
  async #stop(answered: Promise<unknown>, { log, writer, permissions, signal }: Prompt): Promise<void> {
    const { turn, link, agent } = this.#options;
    const { reason } = signal;
    const terminalsEnded = within(cancelMs, agent.cancel());
    let response: PromptResponse | null = null;
    const ended = answered
      .then((value) => {
        response = readPromptResponse(link.agent, value);
      })
      .catch(() => {
        this.isBroken = true;
      });
    // Updates that the agent sent before its response still belong to this turn.
    if (await within(cancelMs, ended)) await within(lastUpdatesMs, writer.settled());
    else this.isBroken = true;
    await terminalsEnded;
    const held = await writer.end();
    await errorOf(permissions.close()); // The run ends with the reason that stopped it.
    if (isTakenOver(reason)) {
      this.isBroken = true;
      return;
    }
    const usage = (response as PromptResponse | null)?.usage;
    const isStopped = reason instanceof RunStopped;
    const end = log.end(isStopped ? { stopReason: "cancelled", usage } : { failed: thrownText(reason) });
    await errorOf(turn.charge(end.usage)); // The reason that stopped the run takes precedence.
    // Even if another process will continue the run, the last text is written for people to read, and unfinished calls
    // are closed.
    await writer.apply([...held, ...end.acts]);
    if (isStopped && reason.why === "closing") this.isBroken = true;
  }

  /** Called when the agent fails. Writes what it has sent so far. */
  async #recordFailure(error: unknown, { log, writer, permissions }: Prompt): Promise<void> {
    const { turn } = this.#options;
    this.isBroken = true;
    await writer.settled();
    const held = await writer.end();
    await errorOf(permissions.close()); // The agent's failure takes precedence.
    const end = log.end({ failed: thrownText(error) });
    await errorOf(turn.charge(end.usage));
    await writer.apply([...held, ...end.acts]);
  }
}

/** Returns a promise's rejection, or `null` if the promise resolves. */
function errorOf(work: Promise<unknown>): Promise<{ readonly error: unknown } | null> {
  return work.then(
    () => null,
    (error: unknown) => ({ error }),
  );
}

/** Some agents end their turn as canceled when a permission is denied. */
function unrequestedCancel(agent: string, refusal: string | null): SkeinError {
  if (refusal === null)
    return failed(agent, "it ended its turn as canceled without being asked to", "Send the message again");
  const advice = "Grant the permission, or request something that does not need it";
  return failed(agent, `it ended its turn: ${refusal.replace(/\.$/, "")}`, advice);
}

/** Whether another process now owns the run. If so, nothing more can be written here. */
function isTakenOver(reason: unknown): boolean {
  if (reason instanceof RunStopped) return reason.why === "lost";
  return reason instanceof SkeinError && reason.code === "fenced";
}

function errorIn({ acts }: TurnLogEnd): string {
  const last = acts.findLast((act) => act.act === "say");
  const text =
    last?.act === "say" && last.message.role === "assistant" ? last.message.errorMessage : undefined;
  return (text ?? "it ended its turn with an error").replace(/\.$/, "");
}
