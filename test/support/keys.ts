import fc from "fast-check";
import type { ParsedKey } from "../../src/index.ts";
import { formatKey } from "../../src/index.ts";

/** Generators for keys of every form that a store can have. */

const agentId = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,6}$/);
const id = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,8}[A-Za-z0-9]$/);
/** External IDs, including everything that must be escaped and words that have a meaning in a key. */
const outside = fc.oneof(
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 }).filter((each) => !/\p{Cc}/u.test(each)),
  fc.constantFrom("thread", "user", "group", "main", "a:b", "100%", "%3A", "%25", "@ann:b.org", "run"),
);
const channel = fc.oneof(
  fc.constantFrom("slack", "telegram", "agent", "thread", "group", "current", "global"),
  outside,
);

const form = fc.oneof(
  fc.record({ form: fc.constant("main"), agentId }),
  fc.record({ form: fc.constant("named"), agentId, sessionId: id }),
  fc.record({ form: fc.constant("direct"), agentId, peer: outside }),
  fc.record({ form: fc.constant("direct"), agentId, channel, peer: outside }),
  fc.record({ form: fc.constant("direct"), agentId, channel, account: outside, peer: outside }),
  fc.record({
    form: fc.constant("group"),
    agentId,
    channel,
    chat: fc.constantFrom("group", "channel"),
    groupId: outside,
  }),
  fc.record({ form: fc.constant("cron"), agentId, job: outside }),
  fc.record({ form: fc.constant("cron"), agentId, job: outside, runId: outside }),
  fc.record({ form: fc.constantFrom("hook", "node"), agentId, id: outside }),
  fc.record({ form: fc.constant("subagent"), agentId, parentSessionId: id, spawnId: id }),
  fc.record({ form: fc.constant("acp"), agentId, spawnId: id }),
  fc.record({ form: fc.constant("reset"), agentId, sessionId: id }),
  fc.record({
    form: fc.constant("other"),
    agentId,
    segments: fc.array(outside, { minLength: 1, maxLength: 5 }),
  }),
);

/** Every key that can be formatted. The few that cannot (a channel named "cron") are skipped. */
export const anyKey = fc
  .tuple(form, fc.option(outside, { nil: undefined }))
  .map(([base, thread]) => (thread === undefined ? base : { ...base, thread }) as ParsedKey)
  .filter((key) => {
    try {
      return formatKey(key) !== "";
    } catch {
      return false;
    }
  });
