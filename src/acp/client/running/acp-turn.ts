import type { ContentBlock, RequestPermissionRequest } from "@agentclientprotocol/sdk/unstable";
import type { AcpLink, Turn, TurnEnd } from "../../../agents/contract.ts";
import type { AcpPermissions } from "../../../config/sections/acp.ts";
import { unlessAborted } from "../../../core/abort.ts";
import type { Clock } from "../../../core/clock.ts";
import { SkeinError } from "../../../core/errors.ts";
import type { IdSource } from "../../../core/ids.ts";
import { createIdSource } from "../../../core/ids.ts";
import type { UserMessage } from "../../../core/messages.ts";
import { thrownText } from "../../../core/text.ts";
import { within } from "../../../core/within.ts";
import { RunStopped } from "../../../runs/worker.ts";
import { promptBlocks } from "../log/prompt-blocks.ts";
import type { TurnLogEnd } from "../log/turn-log.ts";
import { TurnLog } from "../log/turn-log.ts";
import type { Agent } from "./agent.ts";
import { failed } from "./failures.ts";
import { PermissionDesk } from "./permissions.ts";
import type { PromptAnswer } from "./prompt-answer.ts";
import { promptAnswer } from "./prompt-answer.ts";
import { withSystem } from "./system-words.ts";
import { UpdateWriter } from "./update-writer.ts";

/** So long an agent may take to end a turn that was cancelled; runs are left behind after five seconds. */
const cancelMs = 3000;
/** Of what it has sent by then; nothing is written meanwhile. */
const lastWordsMs = 1000;

export const lostWords =
  "[Skein] The process that ran you was lost in the middle of this turn. Look at what is already done, then go on.";

export interface AcpTurnParts {
  readonly turn: Turn;
  readonly link: AcpLink;
  readonly agent: Agent;
  readonly policy: AcpPermissions;
  readonly clock: Clock;
}

/** One prompt and what comes of it. */
interface Pass {
  readonly log: TurnLog;
  readonly writer: UpdateWriter;
  readonly desk: PermissionDesk;
  readonly signal: AbortSignal;
}

/** A turn of an agent: one prompt. The agent's answer ends the run; input that arrives meanwhile is the next run. */
export class AcpTurn {
  readonly #parts: AcpTurnParts;
  /** The agent has answered the prompt. What it sends from then on belongs to no turn, and is dropped. */
  #isAnswered = false;
  readonly #newId: IdSource;
  /** The agent did not end its turn in time, or broke off: it cannot be prompted again. */
  isSpoilt = false;

  constructor(parts: AcpTurnParts) {
    this.#parts = parts;
    this.#newId = createIdSource(parts.clock);
  }

  async run(): Promise<TurnEnd> {
    const { link } = this.#parts;
    const said = await link.unanswered();
    // Nothing unanswered: the process that had the run before left it in the middle.
    const isLeft = link.wasBegun || said.length === 0;
    return this.#prompt(said, isLeft && link.agentSessionId !== null ? lostWords : null);
  }

  async #prompt(said: readonly UserMessage[], lead: string | null): Promise<TurnEnd> {
    const { turn, link, agent, policy, clock } = this.#parts;
    await turn.check();
    const blocks = await this.#blocks(said, lead);
    const stop = new AbortController();
    const onAbort = () => stop.abort(turn.signal.reason);
    turn.signal.addEventListener("abort", onAbort, { once: true });
    if (turn.signal.aborted) onAbort();
    const log = new TurnLog({
      agent: link.agent,
      terminalText: (id) => agent.terminalText(id),
      now: () => clock.now(),
      costBefore: agent.cost,
    });
    const onFailure = (error: unknown) => stop.abort(error);
    const writer = new UpdateWriter(turn, log, onFailure);
    // Without its status, which says less than what came before: Codex asks for calls that are in progress as pending.
    const tell = ({ status: _, ...call }: RequestPermissionRequest["toolCall"]) =>
      writer.push({ ...call, sessionUpdate: "tool_call_update" }, JSON.stringify(call).length);
    const desk = new PermissionDesk({
      id: this.#newId(),
      policy,
      cwd: turn.about.cwd,
      signal: stop.signal,
      approve: turn.approve,
      known: (id) => log.call(id),
      tell,
      notice: (title) =>
        void writer.push({ sessionUpdate: "notice", severity: "warning", title }, title.length),
      onFailure,
    });
    this.#isAnswered = false;
    const onUpdate = (update: unknown, bytes: number) =>
      this.#isAnswered ? undefined : writer.push(update, bytes);
    agent.watch({ desk, onUpdate });
    try {
      turn.emit({ type: "step", phase: "asked", step: 1 });
      await turn.hooks.llmInput(said);
      return await this.#answered(blocks, { log, writer, desk, signal: stop.signal });
    } finally {
      turn.signal.removeEventListener("abort", onAbort);
      agent.watch(null);
      agent.cost = log.cost;
    }
  }

  async #blocks(said: readonly UserMessage[], lead: string | null): Promise<ContentBlock[]> {
    const { turn, link, agent } = this.#parts;
    const blocks = await promptBlocks(said, agent.promptCapabilities, (sha256) => link.blob(sha256));
    if (lead !== null) blocks.unshift({ type: "text", text: said.length === 0 ? lead : `${lead}\n\n` });
    if (blocks.length === 0) throw failed(link.agent, "there is nothing to prompt it with", "Say something");
    return withSystem(blocks, turn.system, agent.system);
  }

  async #answered(blocks: ContentBlock[], pass: Pass): Promise<TurnEnd> {
    const { turn, link, agent } = this.#parts;
    const { writer, signal } = pass;
    signal.throwIfAborted();
    const prompting = agent.prompt(blocks).finally(() => {
      this.#isAnswered = true;
    });
    agent.system = turn.system;
    let answer: PromptAnswer;
    try {
      answer = promptAnswer(link.agent, await unlessAborted(prompting, signal));
      await writer.settled();
      signal.throwIfAborted();
    } catch (error) {
      const why = signal.aborted ? signal.reason : error;
      await (signal.aborted ? this.#cut(prompting, pass) : this.#broke(error, pass));
      if (why instanceof SkeinError) turn.emit({ type: "step", phase: "answered", step: 1, code: why.code });
      throw why;
    }
    return this.#close(answer, pass);
  }

  /** The agent has ended its turn. */
  async #close(answer: PromptAnswer, { log, writer, desk }: Pass): Promise<TurnEnd> {
    const { turn, link } = this.#parts;
    // First of all: a run that waits for somebody cannot end.
    const late = await thrownBy(desk.close());
    const { refusal } = desk;
    const end = log.end({ ...answer, ...(refusal !== null && { why: refusal }) });
    const { usage, stopReason } = end;
    turn.emit({ type: "step", phase: "answered", step: 1, usage, finishReason: stopReason });
    // Counted before it is written, as every answer is.
    const counted = await thrownBy(turn.charge(usage));
    await writer.apply(end.acts);
    const trouble = counted ?? late;
    if (trouble !== null) throw trouble.error;
    if (stopReason === "error")
      throw failed(link.agent, errorIn(end), "Read what it said, and ask otherwise");
    if (stopReason === "aborted") throw endedByItself(link.agent, refusal);
    return { kind: "answered", reply: end.reply, entryId: writer.last?.id ?? "" };
  }

  /** Stopped from our side: the agent is told, and what it had said by then is written. */
  async #cut(prompting: Promise<unknown>, { log, writer, desk, signal }: Pass): Promise<void> {
    const { turn, link, agent } = this.#parts;
    const { reason } = signal;
    const quiet = within(cancelMs, agent.cancel());
    let answer: PromptAnswer | null = null;
    const ending = prompting
      .then((told) => {
        answer = promptAnswer(link.agent, told);
      })
      .catch(() => {
        this.isSpoilt = true;
      });
    // What it sent before it answered is still of this turn.
    if (await within(cancelMs, ending)) await within(lastWordsMs, writer.settled());
    else this.isSpoilt = true;
    await quiet;
    const held = await writer.end();
    await thrownBy(desk.close()); // the run ends by what stopped it
    if (isTaken(reason)) {
      this.isSpoilt = true;
      return;
    }
    const usage = (answer as PromptAnswer | null)?.usage;
    const isStopped = reason instanceof RunStopped;
    const end = log.end(isStopped ? { stopReason: "cancelled", usage } : { failed: thrownText(reason) });
    await thrownBy(turn.charge(end.usage)); // whatever the count says
    // Where another goes on, the ports keep the last words for people, and nobody else closes its calls any better.
    await writer.apply([...held, ...end.acts]);
    if (isStopped && reason.why === "closing") this.isSpoilt = true;
  }

  /** The agent broke off. */
  async #broke(error: unknown, { log, writer, desk }: Pass): Promise<void> {
    const { turn } = this.#parts;
    this.isSpoilt = true;
    await writer.settled();
    const held = await writer.end();
    await thrownBy(desk.close()); // why it broke off is told all the same
    const end = log.end({ failed: thrownText(error) });
    await thrownBy(turn.charge(end.usage)); // and so it is here
    await writer.apply([...held, ...end.acts]);
  }
}

/** What a promise is rejected with; `null`: it is not. */
function thrownBy(work: Promise<unknown>): Promise<{ readonly error: unknown } | null> {
  return work.then(
    () => null,
    (error: unknown) => ({ error }),
  );
}

/** As cancelled, though we did not: some do so when they are denied something. */
function endedByItself(agent: string, refusal: string | null): SkeinError {
  if (refusal === null)
    return failed(agent, "it ended its turn as cancelled, though nobody here did that", "Ask again");
  const advice = "Allow it, or ask for what needs no permission";
  return failed(agent, `it ended its turn: ${refusal.replace(/\.$/, "")}`, advice);
}

/** The run is another's: nothing more is ours to write. */
function isTaken(reason: unknown): boolean {
  if (reason instanceof RunStopped) return reason.why === "lost";
  return reason instanceof SkeinError && reason.code === "fenced";
}

function errorIn({ acts }: TurnLogEnd): string {
  const last = acts.findLast((act) => act.act === "say");
  const told =
    last?.act === "say" && last.message.role === "assistant" ? last.message.errorMessage : undefined;
  return (told ?? "it ended its turn with an error").replace(/\.$/, "");
}
