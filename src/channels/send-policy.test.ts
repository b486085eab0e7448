import { describe, expect, test } from "vitest";
import { parseKey } from "../core/keys.ts";
import type { SendMatch, SendPolicy } from "./send-policy.ts";
import { chatTypeOf, decideSend } from "./send-policy.ts";

const group = "agent:main:slack:group:G1";
const direct = "agent:main:slack:user:U1";

describe("the send policy", () => {
  test.each<[string, SendMatch, string, boolean]>([
    ["no condition", {}, group, true],
    ["conditions that are null", { channel: null, chatType: null, keyPrefix: null }, "agent:main:main", true],
    ["its channel", { channel: "slack" }, group, true],
    ["another channel", { channel: "matrix" }, group, false],
    ["a channel, for a key without one", { channel: "slack" }, "agent:main:main", false],
    ["group", { chatType: "group" }, group, true],
    ["group, for a thread of it", { chatType: "group" }, `${group}:thread:t`, true],
    ["channel, for a group", { chatType: "channel" }, group, false],
    ["channel", { chatType: "channel" }, "agent:main:slack:channel:C1", true],
    ["direct", { chatType: "direct" }, direct, true],
    ["direct, for main", { chatType: "direct" }, "agent:main:main", true],
    ["direct, for a cron session", { chatType: "direct" }, "agent:main:cron:nightly", false],
    ["a prefix of the key", { keyPrefix: "agent:main:slack" }, direct, true],
    ["a prefix without the agent", { keyPrefix: "slack:user" }, direct, true],
    ["a prefix in the middle", { keyPrefix: "user:" }, direct, false],
    ["the global key", { keyPrefix: "global" }, "global", true],
    ["all of several", { channel: "slack", chatType: "direct", keyPrefix: "slack:user:U1" }, direct, true],
    ["all but one of several", { channel: "slack", chatType: "group", keyPrefix: "slack" }, direct, false],
  ])("[LIB20] a rule with %s", (_, match, sessionKey, isMatch) => {
    const policy: SendPolicy = { default: "allow", rules: [{ action: "deny", match }] };
    expect(decideSend(policy, { sessionKey })).toEqual(
      isMatch
        ? { action: "deny", by: "rule", rule: 0, reason: "session.sendPolicy.rules.0: deny" }
        : { action: "allow", by: "default", rule: null, reason: "session.sendPolicy.default: allow" },
    );
  });

  test("[LIB20] the first matching rule decides, and the session's own setting comes first", () => {
    const policy: SendPolicy = {
      default: "deny",
      rules: [
        { action: "deny", match: { channel: "matrix" } },
        { action: "allow", match: { chatType: "group" } },
        { action: "deny", match: {} },
      ],
    };
    expect(decideSend(policy, { sessionKey: group })).toMatchObject({ action: "allow", rule: 1 });
    expect(decideSend(policy, { sessionKey: group, channel: "matrix" })).toMatchObject({ rule: 0 });
    expect(decideSend(policy, { sessionKey: direct })).toMatchObject({ action: "deny", rule: 2 });
    expect(decideSend(policy, { sessionKey: direct, override: "allow" })).toMatchObject({
      action: "allow",
      by: "session",
    });
    expect(decideSend({ ...policy, rules: [] }, { sessionKey: group })).toMatchObject({ action: "deny" });
  });

  test("[LIB20] a session that is not a conversation with people has no kind", () => {
    for (const key of ["global", "agent:a:hook:h", "agent:a:session:trip", "agent:a:acp:s1"]) {
      expect(chatTypeOf(parseKey(key))).toBeNull();
    }
  });
});
