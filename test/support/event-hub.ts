import type { Redactor } from "../../src/access/redaction/redactor.ts";
import { createRedactor } from "../../src/access/redaction/redactor.ts";
import { EventBus } from "../../src/core/events.ts";
import type { Principal } from "../../src/gateway/auth/principal.ts";
import { everyUser, tokenScopes } from "../../src/gateway/auth/principal.ts";
import type { EventNumbers } from "../../src/gateway/events/event-numbers.ts";
import { countFrom } from "../../src/gateway/events/event-numbers.ts";
import type { EventSelection } from "../../src/gateway/events/event-selection.ts";
import type { EventHubOptions, OpenEventHub } from "../../src/gateway/events/hub.ts";
import { createEventHub } from "../../src/gateway/events/hub.ts";
import type { EventSink } from "../../src/gateway/events/subscriber.ts";
import type { SkeinEvent } from "../../src/index.ts";
import type { EventFrame } from "../../src/protocol/frames.ts";

/** A reader whose buffer is emptied by the test. */
export class TestSink implements EventSink {
  readonly frames: EventFrame[] = [];
  readonly texts: string[] = [];
  unread = 0;
  mostUnread = 0;
  isDropped = false;
  /** Immediately reads whatever is sent. */
  readonly isFast: boolean;

  constructor(isFast = true) {
    this.isFast = isFast;
  }

  send(text: string, seq: number, event: string): void {
    const frame = JSON.parse(text) as EventFrame;
    if (frame.seq !== seq || frame.event !== event) throw new Error(`${text} was sent as ${event} ${seq}`);
    this.frames.push(frame);
    this.texts.push(text);
    if (!this.isFast) this.unread += text.length;
    this.mostUnread = Math.max(this.mostUnread, this.unread);
  }

  backlog(): number {
    return this.unread;
  }

  drop(): void {
    this.isDropped = true;
  }

  get seqs(): readonly number[] {
    return this.frames.map(({ seq }) => seq);
  }

  /** Returns each event's name and number, and a gap's contents. */
  get said(): readonly string[] {
    return this.frames.map(({ event, seq, payload }) => {
      if (event !== "gap") return `${event} ${seq}`;
      const { after, upTo, reason } = payload as Record<string, unknown>;
      return `gap ${after}-${upTo} ${reason}`;
    });
  }
}

export interface World {
  readonly bus: EventBus;
  readonly hub: OpenEventHub;
  readonly numbers: EventNumbers;
  readonly problems: unknown[];
  emit(event: SkeinEvent): void;
  /** Reports that events of other processes are missing. */
  lose(): void;
  /** Lets the hub do its deferred work once. */
  tick(): void;
  /** Repeats this until no work remains, up to a limit. */
  settle(most?: number): void;
}

export function hubWorld(
  options: Partial<Pick<EventHubOptions, "limits" | "numbers">> & { redactor?: Redactor } = {},
): World {
  const problems: unknown[] = [];
  const due: (() => void)[] = [];
  const losses: (() => void)[] = [];
  const bus = new EventBus((error) => void problems.push(error));
  const numbers = options.numbers ?? countFrom(1);
  const hub = createEventHub({
    redactor: createRedactor(),
    ...options,
    numbers,
    subscribe: (listener, onLoss) => {
      losses.push(onLoss ?? (() => undefined));
      return bus.subscribe(listener);
    },
    report: (error) => void problems.push(error),
    schedule: (act) => void due.push(act),
  });
  const tick = () => {
    for (const act of due.splice(0)) act();
  };
  const settle = (most = 1000) => {
    for (let round = 0; round < most && due.length > 0; round += 1) tick();
  };
  const lose = () => {
    for (const act of losses) act();
  };
  return { bus, hub, numbers, problems, emit: bus.emit, lose, tick, settle };
}

const basis = { tokenId: "t", name: "test", expiresAt: null };
export const adminOfAll: Principal = { ...basis, scopes: tokenScopes, user: everyUser };
export const adminOf = (user: string | null): Principal => ({ ...basis, scopes: tokenScopes, user });
export const readerOf = (user: string | null): Principal => ({ ...basis, scopes: ["read"], user });

export function want(changes: Partial<EventSelection> = {}): EventSelection {
  return { keys: null, events: [], of: "everybody", agentId: null, ...changes };
}

export const ofUser = (userId: string | null) => ({ of: { userId } });

const about = { at: 5, userId: null, sessionKey: "agent:main:main", sessionId: "s-main" };
type About = Partial<Pick<SkeinEvent, "userId" | "sessionKey" | "sessionId" | "runId">>;

export const updated = (changes: About = {}): SkeinEvent => ({
  type: "session.updated",
  ...about,
  ...changes,
});

type DeltaChanges = About & { kind?: "text" | "thinking"; step?: number; offset?: number };

export function delta(text: string, changes: DeltaChanges = {}): SkeinEvent {
  return {
    ...{ type: "run.delta", kind: "text", ...about, runId: "r1", step: 1, offset: 0 },
    ...changes,
    delta: text,
  } as SkeinEvent;
}

export const ended = (changes: About = {}): SkeinEvent => ({
  type: "run.ended",
  ...about,
  runId: "r1",
  state: "ok",
  code: null,
  error: null,
  ...changes,
});

export function toolCall(args: Record<string, unknown>, changes: About = {}): SkeinEvent {
  const call = { phase: "call" as const, toolCallId: "c", toolName: "read", arguments: args };
  return { type: "run.tool", ...about, runId: "r1", ...call, ...changes };
}

export function appended(role: "user" | "assistant", text: string, changes: About = {}): SkeinEvent {
  const message = { role, content: [{ type: "text", text }] };
  const entry = { type: "message", id: "e1", parentId: null, timestamp: "2026-01-01T00:00:00Z", message };
  return { type: "entry.appended", ...about, entry, ...changes } as unknown as SkeinEvent;
}
