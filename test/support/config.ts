import fc from "fast-check";

/** Generators for configuration files. */

const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 3 });

function record(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> {
  return fc
    .record(fields)
    .map((value) => Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)));
}

const duration = fc
  .tuple(fc.integer({ min: 1, max: 500 }), fc.constantFrom("ms", "s", "m", "h", "d", "w"))
  .map(([count, unit]) => `${count}${unit}`);
const size = fc.oneof(
  fc.integer({ min: 1, max: 1e12 }),
  fc
    .tuple(fc.integer({ min: 1, max: 500 }), fc.constantFrom("B", "KB", "GB", "MiB"))
    .map(([n, u]) => `${n}${u}`),
);
const path = fc.constantFrom("~/work", "work", "./a b", "/srv/x", "~", "..", "日本");

const resetRule = fc.oneof(
  record({ mode: fc.constant("none") }),
  record({ mode: fc.constant("daily"), atHour: some(fc.integer({ min: 0, max: 23 })) }),
  record({ mode: fc.constant("idle"), minutes: some(fc.integer({ min: 1, max: 9999 })) }),
);
const agent = record({ cwd: some(fc.oneof(path, fc.constant(null))) });
const kind = fc.constantFrom("main", "group", "cron", "hook", "node", "other");
const channel = fc.constantFrom("slack", "a.b", "My Channel", "constructor", "42", "true");

/** What a configuration file may hold, as plain data. */
export const anyConfig = record({
  store: some(path.map((each) => `files:${each}`)),
  durability: some(fc.constantFrom("full", "os")),
  lock: some(record({ timeoutMs: some(fc.integer({ min: 0, max: 60_000 })) })),
  agents: some(fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9_-]{0,5}$/), agent, { maxKeys: 3 })),
  session: some(
    record({
      scope: some(fc.constantFrom("per-sender", "global")),
      reset: some(
        fc
          .tuple(
            resetRule,
            record({
              byKind: some(fc.dictionary(kind, resetRule, { maxKeys: 3 })),
              byChannel: some(fc.dictionary(channel, resetRule, { maxKeys: 3 })),
            }),
          )
          .map(([rule, more]) => ({ ...rule, ...more })),
      ),
      maintenance: some(
        record({
          mode: some(fc.constantFrom("warn", "enforce")),
          pruneAfter: some(fc.oneof(duration, fc.constant(null))),
          maxSessions: some(fc.oneof(fc.integer({ min: 1, max: 1e6 }), fc.constant(null))),
          maxDiskBytes: some(fc.oneof(size, fc.constant(null))),
          highWater: some(fc.constantFrom(0.1, 0.5, 1)),
          trashAfter: some(fc.oneof(duration, fc.constant(null))),
        }),
      ),
    }),
  ),
});
