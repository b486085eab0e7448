import type { EventFeed } from "../../src/core/events.ts";
import type { Script, ScriptEngine, Statement, StatementResult } from "../../src/core/script.ts";
import type { WorkingBackend } from "../../src/store/work.ts";

/** Back ends with one fault each. */

export interface BrokenBackend {
  readonly name: string;
  /** Part of the name of the case that notices the fault. */
  readonly noticedBy: string;
  /** Replaces a statement, or its result. */
  readonly alter?: (
    statement: Statement,
    earlier: readonly Statement[],
  ) => Statement | { result: StatementResult };
  readonly events?: (events: EventFeed) => Partial<EventFeed>;
}

const withoutEffect = { result: 1 };

export const brokenBackends: readonly BrokenBackend[] = [
  {
    name: "does not store accepted input",
    noticedBy: "accepted input is executed once",
    alter: (statement) => (statement.text.startsWith("INSERT INTO runs ") ? withoutEffect : statement),
  },
  {
    name: "takes the newest message of a session first",
    noticedBy: "in the order of their acceptance",
    alter: (statement) => ({
      ...statement,
      text: statement.text.replace("ORDER BY rank, seq", "ORDER BY rank, seq DESC"),
    }),
  },
  {
    name: "does not find earlier requests",
    noticedBy: "a repeated idempotency key",
    alter: (statement, earlier) => {
      const isAccepting = !earlier.some(({ text }) => text.startsWith("INSERT INTO runs "));
      const isSearch =
        statement.wants !== "changes" && /FROM runs .*(idem|run_id) = \?/s.test(statement.text);
      return isAccepting && isSearch ? { result: statement.wants === "rows" ? [] : undefined } : statement;
    },
  },
  {
    name: "forgets the answer to an approval",
    noticedBy: "waits for an approval",
    alter: (statement) => (statement.text.startsWith("UPDATE approvals ") ? withoutEffect : statement),
  },
  {
    name: "leases a message to every process",
    noticedBy: "delivered once",
    alter: (statement) =>
      statement.text.startsWith("UPDATE outbox SET owner = ?") ? withoutEffect : statement,
  },
  {
    name: "does not revoke tokens",
    noticedBy: "a token is accepted",
    alter: (statement) =>
      statement.text.startsWith("UPDATE gateway_tokens SET revoked_at") ? withoutEffect : statement,
  },
  {
    name: "repeats events",
    noticedBy: "events of a run once",
    events: (events) => ({
      publish: (event) => {
        events.publish(event);
        events.publish(event);
      },
    }),
  },
  {
    name: "loses events",
    noticedBy: "events of a run once",
    events: (events) => ({
      publish: (event) => void (event.type !== "run.started" && events.publish(event)),
    }),
  },
];

export function breakBackend(backend: WorkingBackend, { alter, events }: BrokenBackend): WorkingBackend {
  const engine = alter === undefined ? backend.engine : alterStatements(backend.engine, alter);
  const shared = { ...backend.shared, events: override(backend.shared.events, events) };
  return {
    engine,
    shared,
    onError: null,
    openStore: (options) => {
      const store = backend.openStore(options);
      return { ...store, work: { ...store.work, engine, shared } };
    },
    findProblems: () => backend.findProblems(),
    close: () => backend.close(),
  };
}

/** Replaces some methods of an object that has private fields. */
function override<T extends object>(object: T, replace: ((object: T) => Partial<T>) | undefined): T {
  const replaced = replace?.(object) ?? {};
  return new Proxy(object, {
    get: (target, name) => {
      const value: unknown = Reflect.get(replaced, name) ?? Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function alterStatements(engine: ScriptEngine, alter: NonNullable<BrokenBackend["alter"]>): ScriptEngine {
  const altered = <T>(script: () => Script<T>) =>
    function* (): Script<T> {
      const running = script();
      const earlier: Statement[] = [];
      let step = running.next();
      while (step.done !== true) {
        const next = alter(step.value, earlier);
        earlier.push(step.value);
        step = running.next("result" in next ? next.result : yield next);
      }
      return step.value;
    };
  return {
    read: (script) => engine.read(altered(script)),
    change: (durability, whose, script) => engine.change(durability, whose, altered(script)),
    changeEach: (changes) =>
      engine.changeEach(changes.map(({ whose, script }) => ({ whose, script: altered(script) }))),
    version: () => engine.version(),
    watch: (listener) => engine.watch(listener),
    mark: () => engine.mark(),
    fenceStep: () => engine.fenceStep(),
  };
}
