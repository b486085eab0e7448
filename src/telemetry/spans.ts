import type { Context, Link, Span, SpanContext, SpanKind, Tracer } from "@opentelemetry/api";
import type { Clock } from "../core/clock.ts";
import type { SkeinEvent, SkeinEventType } from "../core/events.ts";
import { BoundedMap } from "./bounded.ts";
import type { AttributeSet } from "./genai.ts";
import {
  agentOfKey,
  attributes,
  finishAttributes,
  modelAttributes,
  short,
  usageAttributes,
} from "./genai.ts";

type Api = typeof import("@opentelemetry/api");

export interface SpanSettings {
  readonly api: Api;
  readonly tracer: Tracer;
  readonly clock: Clock;
  /** Runs whose spans are open at once; beyond it the oldest ends as unfinished. By default 10,000. */
  readonly mostOpen?: number;
  /** Whether a span says whose it is; by default not. */
  readonly userIds?: boolean;
}

interface Queued {
  readonly at: number;
  readonly lane: string;
  readonly startedBy: string | undefined;
}

/** A span, and when it began: an end is never before it. */
interface OpenSpan {
  readonly span: Span;
  readonly from: number;
}

interface OpenRun extends OpenSpan {
  readonly context: Context;
  /** What every span of the run says. */
  readonly about: AttributeSet;
  readonly tools: BoundedMap<OpenSpan>;
  chat: OpenSpan | null;
  /** When a model that failed is asked anew, unless that is told as a step of its own. */
  askedAgainAt: number | null;
}

type RunEvent<T extends SkeinEventType = SkeinEventType> = SkeinEvent<T> & { readonly runId: string };

const mostToolsOfRun = 1000;
const second = 1000;

/**
 * Spans from events, by the GenAI conventions: `invoke_agent` for a run, and beneath it `chat` for each request to a
 * model and `execute_tool` for each call. They hold names and figures, never what was said. Every span ends: with what
 * it stands for, with its run, when there are too many, or at `close`.
 */
export class SpanWatcher {
  readonly #settings: SpanSettings;
  readonly #queued: BoundedMap<Queued>;
  readonly #open: BoundedMap<OpenRun>;
  readonly #ended: BoundedMap<SpanContext>;
  readonly #recovered: BoundedMap<true>;

  constructor(settings: SpanSettings) {
    const most = settings.mostOpen ?? 10_000;
    this.#settings = settings;
    this.#queued = new BoundedMap(most);
    this.#ended = new BoundedMap(most);
    this.#recovered = new BoundedMap(most);
    this.#open = new BoundedMap(most, (run) => this.#endUnfinished(run, settings.clock.now()));
  }

  readonly onEvent = (event: SkeinEvent): void => {
    if (!hasRun(event)) return;
    switch (event.type) {
      case "run.queued":
        this.#enqueued(event);
        break;
      case "run.started":
        this.#started(event);
        break;
      case "run.step":
        if (event.phase === "asked") this.#asked(event);
        else this.#answered(event);
        break;
      case "run.retry":
        this.#retried(event);
        break;
      case "run.tool":
        if (event.phase === "call") this.#called(event);
        else this.#returned(event);
        break;
      case "run.compaction":
        this.#note(event.runId, "skein.compaction", event.at, {
          "skein.compaction.phase": event.phase,
          "skein.compaction.measure": short(event.measure),
        });
        break;
      case "run.waiting":
        this.#note(event.runId, "skein.waiting", event.at, { "skein.waiting.for": event.for });
        break;
      case "run.resumed":
        this.#note(event.runId, "skein.resumed", event.at);
        break;
      case "run.sleeping":
        this.#note(event.runId, "skein.sleeping", event.at);
        break;
      case "run.recovered":
        this.#recover(event);
        break;
      case "run.ended":
        this.#runEnded(event);
    }
  };

  /** Ends what is open. */
  close(): void {
    const now = this.#settings.clock.now();
    for (const run of this.#open.values()) this.#endUnfinished(run, now);
    for (const map of [this.#open, this.#queued, this.#ended, this.#recovered]) map.clear();
  }

  #enqueued({ runId, at, lane, startedBy }: RunEvent<"run.queued">): void {
    if (this.#open.get(runId) === undefined) this.#queued.set(runId, { at, lane, startedBy });
    else this.#note(runId, "skein.queued", at);
  }

  #started(event: RunEvent<"run.started">): void {
    const extra = { [attributes.attempt]: event.attempt };
    const isOpen = this.#open.get(event.runId) !== undefined;
    if (isOpen) this.#note(event.runId, "skein.resumed", event.at, extra);
    else this.#begin(event, event.at, event.startedBy, event.agentId, extra);
  }

  #begin(
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
      ...(agent !== null && { [attributes.agentId]: short(agent), [attributes.agentName]: short(agent) }),
      [attributes.conversation]: short(event.sessionId),
      [attributes.sessionKey]: short(event.sessionKey),
      [attributes.runId]: short(event.runId),
      ...(userIds === true && event.userId !== null && { [attributes.userId]: short(event.userId) }),
    };
    const parentId = startedBy ?? queued?.startedBy;
    const parent = parentId === undefined ? undefined : this.#open.get(parentId);
    const ended = parentId === undefined ? undefined : this.#ended.get(parentId);
    const links: Link[] = parent === undefined && ended !== undefined ? [{ context: ended }] : [];
    const span = tracer.startSpan(
      agent === null ? "invoke_agent" : `invoke_agent ${short(agent)}`,
      {
        kind: api.SpanKind.INTERNAL,
        startTime: timeOf(at),
        links,
        attributes: {
          [attributes.operation]: "invoke_agent",
          ...about,
          ...(queued !== undefined && {
            [attributes.lane]: short(queued.lane),
            [attributes.queueMs]: Math.max(0, at - queued.at),
          }),
          ...(this.#recovered.take(event.runId) === true && { [attributes.recovered]: true }),
          ...extra,
        },
      },
      parent?.context ?? api.ROOT_CONTEXT,
    );
    const context = api.trace.setSpan(api.ROOT_CONTEXT, span);
    const tools = new BoundedMap<OpenSpan>(mostToolsOfRun, (tool) =>
      this.#fail(tool, this.#settings.clock.now(), null),
    );
    const run: OpenRun = { span, from: at, context, about, tools, chat: null, askedAgainAt: null };
    this.#open.set(event.runId, run);
    return run;
  }

  #asked(event: RunEvent<"run.step">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    if (run.chat !== null) this.#fail(run.chat, event.at, null);
    run.askedAgainAt = null;
    run.chat = this.#chat(run, event, event.at);
  }

  #chat(run: OpenRun, event: RunEvent<"run.step">, at: number): OpenSpan {
    const model = modelAttributes(event);
    run.span.setAttributes(model);
    const more = { [attributes.operation]: "chat", ...model, [attributes.step]: event.step };
    return this.#child(run, `chat ${short(event.model)}`, at, more, this.#settings.api.SpanKind.CLIENT);
  }

  #answered(event: RunEvent<"run.step">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    const chat = run.chat ?? this.#chat(run, event, Math.min(run.askedAgainAt ?? event.at, event.at));
    run.chat = null;
    run.askedAgainAt = null;
    chat.span.setAttributes({ ...finishAttributes(event.finishReason), ...usageAttributes(event.usage) });
    if (event.code === undefined) end(chat, event.at);
    else this.#fail(chat, event.at, event.code);
  }

  #retried(event: RunEvent<"run.retry">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    this.#note(event.runId, "skein.retry", event.at, {
      [attributes.attempt]: event.attempt,
      [attributes.errorType]: short(event.code),
      "skein.retry.delay_ms": event.delayMs,
    });
    if (run.chat !== null) this.#fail(run.chat, event.at, event.code);
    run.chat = null;
    run.askedAgainAt = event.at + event.delayMs;
  }

  #called(event: RunEvent<"run.tool">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    const before = run.tools.take(event.toolCallId);
    if (before !== undefined) this.#fail(before, event.at, null);
    run.tools.set(event.toolCallId, this.#tool(run, event, event.at));
  }

  #tool(run: OpenRun, event: RunEvent<"run.tool">, at: number): OpenSpan {
    const more = {
      [attributes.operation]: "execute_tool",
      [attributes.toolName]: short(event.toolName),
      [attributes.toolCallId]: short(event.toolCallId),
      [attributes.toolType]: "function",
    };
    const { INTERNAL } = this.#settings.api.SpanKind;
    return this.#child(run, `execute_tool ${short(event.toolName)}`, at, more, INTERNAL);
  }

  #returned(event: RunEvent<"run.tool">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) return;
    const from = event.at - (event.durationMs ?? 0);
    const tool = run.tools.take(event.toolCallId) ?? this.#tool(run, event, from);
    if (event.isError === true) this.#fail(tool, event.at, "tool_error");
    else end(tool, event.at);
  }

  #child(run: OpenRun, name: string, at: number, more: AttributeSet, kind: SpanKind): OpenSpan {
    const options = { kind, startTime: timeOf(at), attributes: { ...run.about, ...more } };
    return { span: this.#settings.tracer.startSpan(name, options, run.context), from: at };
  }

  #recover(event: RunEvent<"run.recovered">): void {
    const run = this.#open.get(event.runId);
    if (run === undefined) {
      this.#recovered.set(event.runId, true);
      return;
    }
    this.#endParts(run, event.at);
    run.span.setAttribute(attributes.recovered, true);
    this.#note(event.runId, "skein.recovered", event.at, { [attributes.attempt]: event.attempt });
  }

  #runEnded(event: RunEvent<"run.ended">): void {
    if (event.mergedInto !== undefined) {
      this.#note(event.mergedInto, "skein.merged", event.at, { [attributes.runId]: short(event.runId) });
    }
    const queued = this.#queued.get(event.runId);
    const open = this.#open.take(event.runId);
    this.#recovered.take(event.runId);
    if (open === undefined && (queued === undefined || event.state === "merged")) {
      this.#queued.take(event.runId);
      return;
    }
    const run = open ?? this.#begin(event, queued?.at ?? event.at, undefined, undefined, {});
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
    run.askedAgainAt = null;
    run.tools.clear();
  }

  /** Without a code: nobody told how it went. */
  #fail(open: OpenSpan, at: number, code: string | null): void {
    if (code === null) open.span.setAttribute(attributes.unfinished, true);
    else {
      open.span.setAttribute(attributes.errorType, short(code));
      open.span.setStatus({ code: this.#settings.api.SpanStatusCode.ERROR });
    }
    end(open, at);
  }

  #note(runId: string, name: string, at: number, more: AttributeSet = {}): void {
    this.#open.get(runId)?.span.addEvent(name, more, timeOf(at));
  }
}

function hasRun(event: SkeinEvent): event is RunEvent {
  return event.runId !== undefined;
}

function end(open: OpenSpan, at: number): void {
  open.span.end(timeOf(Math.max(open.from, at)));
}

/** As seconds and nanoseconds: a plain number from before the process began would be taken for one since. */
function timeOf(at: number): [number, number] {
  const seconds = Math.floor(at / second);
  return [seconds, Math.round((at - seconds * second) * 1e6)];
}
