import type { Context, Link, Span, SpanContext, SpanKind, Tracer } from "@opentelemetry/api";
import { BoundedMap } from "../core/bounded-map.ts";
import type { Clock } from "../core/clock.ts";
import type { SkeinEvent, SkeinEventType } from "../core/events.ts";
import { present } from "../core/present.ts";
import type { AttributeSet } from "./genai.ts";
import {
  agentOfKey,
  attributes,
  finishAttributes,
  modelAttributes,
  shorten,
  usageAttributes,
} from "./genai.ts";

type Api = typeof import("@opentelemetry/api");

export interface SpanSettings {
  readonly api: Api;
  readonly tracer: Tracer;
  readonly clock: Clock;
  /**
   * The maximum number of runs with open spans. If there are more, the oldest run's spans are ended and marked as
   * unfinished. Defaults to 10,000.
   */
  readonly maxOpen?: number;
  /** Whether spans contain user IDs. Defaults to `false`. */
  readonly userIds?: boolean;
}

interface Queued {
  readonly at: number;
  readonly lane: string;
  readonly startedBy: string | undefined;
}

/** A span and its start time. The time is needed because a span must not end before it starts. */
interface OpenSpan {
  readonly span: Span;
  readonly from: number;
}

interface OpenRun extends OpenSpan {
  readonly context: Context;
  /** The attributes for every span in the run. */
  readonly about: AttributeSet;
  readonly tools: BoundedMap<OpenSpan>;
  chat: OpenSpan | null;
  /** The time at which a failed request will be retried, unless the retry is a separate step. */
  retryAt: number | null;
}

type RunEvent<T extends SkeinEventType = SkeinEventType> = SkeinEvent<T> & { readonly runId: string };

const maxToolsPerRun = 1000;
const second = 1000;

/**
 * Creates spans from events, following the GenAI conventions. A run is an `invoke_agent` span, with a child `chat` span
 * for each model request and an `execute_tool` span for each call. Spans contain names and figures, but never messages.
 * Every span ends with its operation, with its run, when there are too many spans, or on `close`.
 */
export class SpanWatcher {
  readonly #settings: SpanSettings;
  readonly #queued: BoundedMap<Queued>;
  readonly #open: BoundedMap<OpenRun>;
  readonly #ended: BoundedMap<SpanContext>;
  readonly #recovered: BoundedMap<true>;

  constructor(settings: SpanSettings) {
    const max = settings.maxOpen ?? 10_000;
    this.#settings = settings;
    this.#queued = new BoundedMap(max);
    this.#ended = new BoundedMap(max);
    this.#recovered = new BoundedMap(max);
    this.#open = new BoundedMap(max, (run) => this.#endUnfinished(run, settings.clock.now()));
  }

  readonly onEvent = (event: SkeinEvent): void => {
    if (!hasRun(event)) return;
    switch (event.type) {
      case "run.queued":
        this.#takeQueued(event);
        break;
      case "run.started":
        this.#takeStarted(event);
        break;
      case "run.step":
        if (event.phase === "asked") this.#takeAsked(event);
        else this.#takeAnswered(event);
        break;
      case "run.retry":
        this.#takeRetry(event);
        break;
      case "run.tool":
        if (event.phase === "call") this.#takeToolCall(event);
        else this.#takeToolResult(event);
        break;
      case "run.compaction":
        this.#addEvent(event.runId, "skein.compaction", event.at, {
          "skein.compaction.phase": event.phase,
          "skein.compaction.measure": shorten(event.measure),
        });
        break;
      case "run.waiting":
        this.#addEvent(event.runId, "skein.waiting", event.at, { "skein.waiting.for": event.for });
        break;
      case "run.resumed":
        this.#addEvent(event.runId, "skein.resumed", event.at);
        break;
      case "run.sleeping":
        this.#addEvent(event.runId, "skein.sleeping", event.at);
        break;
      case "run.recovered":
        this.#takeRecovered(event);
        break;
      case "run.ended":
        this.#takeEnded(event);
    }
  };

  /** Ends all open spans. */
  close(): void {
    const now = this.#settings.clock.now();
    for (const run of this.#open.values()) this.#endUnfinished(run, now);
    for (const map of [this.#open, this.#queued, this.#ended, this.#recovered]) map.clear();
  }

  #takeQueued({ runId, at, lane, startedBy }: RunEvent<"run.queued">): void {
    if (this.#open.get(runId) === undefined) this.#queued.set(runId, { at, lane, startedBy });
    else this.#addEvent(runId, "skein.queued", at);
  }

  #takeStarted(event: RunEvent<"run.started">): void {
    const extra = { [attributes.attempt]: event.attempt };
    const isOpen = this.#open.get(event.runId) !== undefined;
    if (isOpen) this.#addEvent(event.runId, "skein.resumed", event.at, extra);
    else {
      const { lane, queuedMs } = event;
      const queue = present({ [attributes.lane]: lane && shorten(lane), [attributes.queueMs]: queuedMs });
      this.#startRun(event, event.at, event.startedBy, event.agentId, { ...queue, ...extra });
    }
  }

  #startRun(
    event: RunEvent,
    at: number,
    startedBy: string | undefined,
    agentId: string | undefined,
    extra: AttributeSet,
  ): OpenRun {
    const { api, tracer, userIds } = this.#settings;
    const queued = this.#queued.take(event.runId);
    const agent = agentId ?? agentOfKey(event.sessionKey);
    const about: AttributeSet = {
      ...(agent !== null && { [attributes.agentId]: shorten(agent), [attributes.agentName]: shorten(agent) }),
      [attributes.conversation]: shorten(event.sessionId),
      [attributes.sessionKey]: shorten(event.sessionKey),
      [attributes.runId]: shorten(event.runId),
      ...(userIds === true && event.userId !== null && { [attributes.userId]: shorten(event.userId) }),
    };
    const parentId = startedBy ?? queued?.startedBy;
    const parent = parentId === undefined ? undefined : this.#open.get(parentId);
    const ended = parentId === undefined ? undefined : this.#ended.get(parentId);
    const links: Link[] = parent === undefined && ended !== undefined ? [{ context: ended }] : [];
    const span = tracer.startSpan(
      agent === null ? "invoke_agent" : `invoke_agent ${shorten(agent)}`,
      {
        kind: api.SpanKind.INTERNAL,
        startTime: timeOf(at),
        links,
        attributes: {
          [attributes.operation]: "invoke_agent",
          ...about,
          ...(queued !== undefined && {
            [attributes.lane]: shorten(queued.lane),
            [attributes.queueMs]: Math.max(0, at - queued.at),
          }),
          ...(this.#recovered.take(event.runId) === true && { [attributes.recovered]: true }),
          ...extra,
        },
      },
      parent?.context ?? api.ROOT_CONTEXT,
    );
    const context = api.trace.setSpan(api.ROOT_CONTEXT, span);
    const tools = new BoundedMap<OpenSpan>(maxToolsPerRun, (tool) =>
      this.#fail(tool, this.#settings.clock.now(), null),
    );
    const run: OpenRun = { span, from: at, context, about, tools, chat: null, retryAt: null };
    this.#open.set(event.runId, run);
    return run;
  }

  #takeAsked(event: RunEvent<"run.step">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    if (run.chat !== null) this.#fail(run.chat, event.at, null);
    run.retryAt = null;
    run.chat = this.#startChat(run, event, event.at);
  }

  #startChat(run: OpenRun, event: RunEvent<"run.step">, at: number): OpenSpan {
    const model = modelAttributes(event);
    run.span.setAttributes(model);
    const more = { [attributes.operation]: "chat", ...model, [attributes.step]: event.step };
    return this.#startChild(
      run,
      `chat ${shorten(event.model)}`,
      at,
      more,
      this.#settings.api.SpanKind.CLIENT,
    );
  }

  #takeAnswered(event: RunEvent<"run.step">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    const chat = run.chat ?? this.#startChat(run, event, Math.min(run.retryAt ?? event.at, event.at));
    run.chat = null;
    run.retryAt = null;
    chat.span.setAttributes({ ...finishAttributes(event.finishReason), ...usageAttributes(event.usage) });
    if (event.code === undefined) end(chat, event.at);
    else this.#fail(chat, event.at, event.code);
  }

  #takeRetry(event: RunEvent<"run.retry">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    this.#addEvent(event.runId, "skein.retry", event.at, {
      [attributes.attempt]: event.attempt,
      [attributes.errorType]: shorten(event.code),
      "skein.retry.delay_ms": event.delayMs,
    });
    if (run.chat !== null) this.#fail(run.chat, event.at, event.code);
    run.chat = null;
    run.retryAt = event.at + event.delayMs;
  }

  #takeToolCall(event: RunEvent<"run.tool">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    const before = run.tools.take(event.toolCallId);
    if (before !== undefined) this.#fail(before, event.at, null);
    run.tools.set(event.toolCallId, this.#startTool(run, event, event.at));
  }

  #startTool(run: OpenRun, event: RunEvent<"run.tool">, at: number): OpenSpan {
    const more = {
      [attributes.operation]: "execute_tool",
      [attributes.toolName]: shorten(event.toolName),
      [attributes.toolCallId]: shorten(event.toolCallId),
      [attributes.toolType]: "function",
    };
    const { INTERNAL } = this.#settings.api.SpanKind;
    return this.#startChild(run, `execute_tool ${shorten(event.toolName)}`, at, more, INTERNAL);
  }

  #takeToolResult(event: RunEvent<"run.tool">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    const from = event.at - (event.durationMs ?? 0);
    const tool = run.tools.take(event.toolCallId) ?? this.#startTool(run, event, from);
    if (event.isError === true) this.#fail(tool, event.at, "tool_error");
    else end(tool, event.at);
  }

  #startChild(run: OpenRun, name: string, at: number, more: AttributeSet, kind: SpanKind): OpenSpan {
    const options = { kind, startTime: timeOf(at), attributes: { ...run.about, ...more } };
    return { span: this.#settings.tracer.startSpan(name, options, run.context), from: at };
  }

  #takeRecovered(event: RunEvent<"run.recovered">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) {
      this.#recovered.set(event.runId, true);
      return;
    }
    this.#endParts(run, event.at);
    run.span.setAttribute(attributes.recovered, true);
    this.#addEvent(event.runId, "skein.recovered", event.at, { [attributes.attempt]: event.attempt });
  }

  #takeEnded(event: RunEvent<"run.ended">): void {
    if (event.mergedInto !== undefined) {
      this.#addEvent(event.mergedInto, "skein.merged", event.at, {
        [attributes.runId]: shorten(event.runId),
      });
    }
    const queued = this.#queued.get(event.runId);
    const open = this.#open.take(event.runId);
    this.#recovered.take(event.runId);
    if (open === undefined && (queued === undefined || event.state === "merged")) {
      this.#queued.take(event.runId);
      return;
    }
    const run = open ?? this.#startRun(event, queued?.at ?? event.at, undefined, undefined, {});
    this.#open.take(event.runId);
    this.#ended.set(event.runId, run.span.spanContext());
    this.#endParts(run, event.at);
    run.span.setAttribute(attributes.state, event.state);
    if (event.state === "ok" || event.state === "merged") end(run, event.at);
    else this.#fail(run, event.at, event.code ?? event.state);
  }

  #endUnfinished(run: OpenRun, at: number): void {
    this.#endParts(run, at);
    this.#fail(run, at, null);
  }

  #endParts(run: OpenRun, at: number): void {
    for (const part of [run.chat, ...run.tools.values()]) if (part !== null) this.#fail(part, at, null);
    run.chat = null;
    run.retryAt = null;
    run.tools.clear();
  }

  /** If there is no code, the span is marked as unfinished. */
  #fail(open: OpenSpan, at: number, code: string | null): void {
    if (code === null) open.span.setAttribute(attributes.unfinished, true);
    else {
      open.span.setAttribute(attributes.errorType, shorten(code));
      open.span.setStatus({ code: this.#settings.api.SpanStatusCode.ERROR });
    }
    end(open, at);
  }

  #addEvent(runId: string, name: string, at: number, more: AttributeSet = {}): void {
    this.#open.get(runId)?.span.addEvent(name, more, timeOf(at));
  }
}

function hasRun(event: SkeinEvent): event is RunEvent {
  return event.runId !== undefined;
}

function end(open: OpenSpan, at: number): void {
  open.span.end(timeOf(Math.max(open.from, at)));
}

/**
 * Returns seconds and nanoseconds. The API would interpret a number smaller than the process start time as relative to
 * that start.
 */
function timeOf(at: number): [number, number] {
  const seconds = Math.floor(at / second);
  return [seconds, Math.round((at - seconds * second) * 1e6)];
}
