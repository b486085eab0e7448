import type { ReceivedEvent } from "skein/client";

/** An answer that is being written. Its entry replaces it. */
export interface LiveAnswer {
  readonly runId: string;
  /** `waiting` means waiting for an approval or another run. */
  readonly state: "running" | "waiting";
  /** `false` if another process writes the answer and sends no events here. */
  readonly isStreaming: boolean;
  readonly text: string;
  /** The number of characters omitted from the beginning because the answer is too long. */
  readonly textOffset: number;
  readonly thinking: string;
  readonly thinkingOffset: number;
  readonly tools: readonly LiveTool[];
}

export interface LiveTool {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

type EventOf<T extends string> = Extract<ReceivedEvent, { readonly event: T }>;

const noText = { text: "", textOffset: 0, thinking: "", thinkingOffset: 0, tools: [] };

function withoutText(answer: LiveAnswer): LiveAnswer {
  return { ...answer, ...noText, tools: answer.tools };
}

/**
 * Returns the live answers after an event: a piece of text, a tool call, a new attempt, or the entry that replaces the
 * answer.
 */
export function withLiveEvent(live: readonly LiveAnswer[], event: ReceivedEvent): readonly LiveAnswer[] {
  switch (event.event) {
    case "run.delta":
      return withDelta(live, event.payload);
    case "run.tool":
      return withChange(live, event.payload.runId, (answer) => withTool(answer, event.payload));
    case "run.retry":
      return withChange(live, event.payload.runId, (answer) => ({ ...answer, ...noText }));
    case "entry.appended": {
      // The event does not name the run, but a session writes only one answer at a time.
      const { entry } = event.payload;
      const isAnswer = entry.type === "message" && entry.message.role === "assistant";
      return isAnswer && live.length > 0 ? live.map(withoutText) : live;
    }
    case "run.step":
      if (event.payload.phase !== "asked") return live;
      return withChange(live, event.payload.runId, (answer) => ({ ...answer, ...noText }));
    case "run.waiting":
    case "run.resumed": {
      const state = event.event === "run.waiting" ? "waiting" : "running";
      return withChange(live, event.payload.runId, (answer) => ({ ...answer, state }));
    }
    case "run.ended":
    case "run.sleeping":
      return live.filter(({ runId }) => runId !== event.payload.runId);
    default:
      return live;
  }
}

function withChange(
  live: readonly LiveAnswer[],
  runId: string | undefined,
  change: (answer: LiveAnswer) => LiveAnswer,
): readonly LiveAnswer[] {
  if (!live.some((answer) => answer.runId === runId)) return live;
  return live.map((answer) => (answer.runId === runId ? change(answer) : answer));
}

/** Whether text is missing before a piece, because an event was lost. */
export function isBehindHole(
  live: readonly LiveAnswer[],
  { runId, kind, offset }: EventOf<"run.delta">["payload"],
): boolean {
  const answer = live.find((each) => each.runId === runId) ?? noText;
  return offset > answer[`${kind}Offset`] + answer[kind].length;
}

/** A piece that has already arrived is ignored. A piece after a gap is dropped, and the answer has to be read again. */
function withDelta(
  live: readonly LiveAnswer[],
  { runId, kind, delta, offset }: EventOf<"run.delta">["payload"],
): readonly LiveAnswer[] {
  if (runId === undefined) return live;
  const found = live.find((answer) => answer.runId === runId);
  const answer = found ?? { runId, state: "running", isStreaming: true, ...noText };
  const before = answer[kind];
  const at = offset - answer[`${kind}Offset`];
  if (at < 0 || at > before.length || at + delta.length <= before.length) return live;
  const next = { ...answer, [kind]: before.slice(0, at) + delta };
  return found === undefined ? [...live, next] : live.map((each) => (each === found ? next : each));
}

function withTool(answer: LiveAnswer, payload: EventOf<"run.tool">["payload"]): LiveAnswer {
  const { phase, toolCallId, toolName, arguments: given } = payload;
  const others = answer.tools.filter((tool) => tool.toolCallId !== toolCallId);
  if (phase === "result") return { ...answer, tools: others };
  const tool = { toolCallId, toolName, ...(given === undefined ? {} : { arguments: given }) };
  return { ...answer, tools: [...others, tool] };
}
