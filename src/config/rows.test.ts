import { describe, expect, test } from "vitest";
import { effectiveConfigText } from "./effective.ts";
import { environmentLayer } from "./environment.ts";
import { parseConfigText } from "./parse-yaml.ts";
import { problemText } from "./problems.ts";
import { readTree } from "./read-tree.ts";
import type { Config } from "./sections/all.ts";
import { sections } from "./sections/all.ts";

const place = { folder: "/p", home: "/home/ann", root: "/r" };

function read(text: string, env: Record<string, string> = {}) {
  const { root, problems } = parseConfigText(text, "/p/skein.yaml", (name) => env[name]);
  const result = readTree(sections, root === null ? [] : [root], () => place, place);
  const all = [...problems, ...result.problems].map((problem) =>
    problemText(problem).replace("/p/skein.yaml:", ""),
  );
  return { ...result, config: result.value as Config, problems: all };
}

const rules = (text: string) => `session:\n  sendPolicy:\n    rules: ${text}\n`;
const keys = "keys (action, match)";

describe("lists of groups", () => {
  test("each group is read completely, with its defaults, and frozen", () => {
    const text =
      '[{ action: deny, match: { channel: "${NAME}" } }, { action: allow, match: ~ }, { action: deny }]';
    const { config, problems } = read(rules(text), { NAME: "slack" });
    const any = { channel: null, chatType: null, keyPrefix: null };
    expect(problems).toEqual([]);
    expect(config.session.sendPolicy.rules).toEqual([
      { action: "deny", match: { ...any, channel: "slack" } },
      { action: "allow", match: any },
      { action: "deny", match: any },
    ]);
    expect(Object.isFrozen(config.session.sendPolicy.rules)).toBe(true);
    expect(Object.isFrozen(config.session.sendPolicy.rules[0])).toBe(true);
    for (const empty of ["", "~", "[]"]) {
      expect(read(rules(empty)).config.session.sendPolicy.rules).toEqual([]);
    }
  });

  test("a mistake in one is reported at its position", () => {
    expect(read(rules("[{ action: allow }, deny, ~, [a], { match: {} }]")).problems).toEqual([
      `3:32: session.sendPolicy.rules.1: found "deny", expected ${keys}`,
      `3:38: session.sendPolicy.rules.2: found null, expected ${keys}`,
      `3:41: session.sendPolicy.rules.3: found a list, expected ${keys}`,
      "3:46: session.sendPolicy.rules.4: found no action, expected an action",
    ]);
    expect(read(rules("[{ action: dney, mtach: {} }]")).problems).toEqual([
      `3:29: session.sendPolicy.rules.0: found the key "mtach", expected one of action, match (did you mean match?)`,
      '3:23: session.sendPolicy.rules.0.action: found "dney", expected "allow" or "deny" (did you mean "deny"?)',
    ]);
    expect(read(rules("deny")).problems).toEqual([
      `3:12: session.sendPolicy.rules: found "deny", expected a list; each item must be ${keys}`,
    ]);
    expect(read(rules("{ action: deny }")).problems).toEqual([
      `3:12: session.sendPolicy.rules: found keys, expected a list; each item must be ${keys}`,
    ]);
    expect(read(rules('[{ action: deny, action: allow }, { action: "${GONE}" }]')).problems).toEqual([
      expect.stringContaining('3:29: session.sendPolicy.rules.0: found a duplicate key "action"'),
      expect.stringContaining("3:57: session.sendPolicy.rules.1.action: found ${GONE}"),
    ]);
  });

  test("are shown with their source, and hide values from variables", () => {
    const written = read(rules('[{ action: deny, match: { channel: "${NAME}" } }]'), { NAME: "hunter2" });
    const text = effectiveConfigText(written);
    expect(text).toContain("      - action: deny # /p/skein.yaml:3\n");
    expect(text).toContain('          channel: "***" # /p/skein.yaml:3\n');
    expect(text).not.toContain("hunter2");
    expect(effectiveConfigText(read(""))).toContain("    rules: [] # default\n");
  });

  test.each(["RULES", "RULES__0__ACTION"])("cannot be set by a variable: %s", (name) => {
    const variable = { name: `SKEIN_SESSION__SEND_POLICY__${name}`, value: "deny", file: null };
    const { problems } = environmentLayer([variable], sections, null);
    expect(problems.map(problemText)).toEqual([
      `${variable.name}: found "deny", expected session.sendPolicy.rules in the configuration file`,
    ]);
  });
});

describe("channels and links", () => {
  test("a channel has a type and an owner; its secret is never shown", () => {
    const written = read(`
channels:
  desk: { type: webhook, secret: hunter2, url: "https://example.org/in", users: { "@a:b": ann, c: ~ } }
  slack: { user: alice }
session: { dmScope: main, identityLinks: { ann: ["desk:@a:b", "slack:U1"] } }`);
    expect(written.problems).toEqual([]);
    expect(written.config.channels.desk).toMatchObject({
      type: "webhook",
      secret: "hunter2",
      url: "https://example.org/in",
      user: null,
      users: { "@a:b": "ann", c: null },
    });
    expect(written.config.channels.slack).toMatchObject({ type: null, secret: null, user: "alice" });
    expect(written.config.session.identityLinks).toEqual({ ann: ["desk:@a:b", "slack:U1"] });
    expect(effectiveConfigText(written)).not.toContain("hunter2");
    expect(read("channels: { desk: { secret: 1337 } }").problems.join()).not.toContain("1337");
  });

  test("links without a channel, and names with a colon, are mistakes", () => {
    expect(read('session: { identityLinks: { ann: [U1], "a:b": [] } }').problems).toEqual([
      '1:40: session.identityLinks: found the key "a:b", expected a name without colons',
      '1:35: session.identityLinks.ann.0: found "U1", expected a channel and a peer in the format channel:peer',
    ]);
  });
});
