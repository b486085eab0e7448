import { expect, test } from "vitest";
import { parseKey } from "../core/keys.ts";
import { historyLimitFor } from "./history-limit.ts";

const channels = {
  slack: {
    historyLimit: 50,
    dmHistoryLimit: 100,
    dms: { U1: { historyLimit: 7 }, U2: { historyLimit: null }, U3: {} },
  },
  matrix: { dms: { "@a:b.org": { historyLimit: 3 } } },
  silent: { historyLimit: null, dmHistoryLimit: null, dms: {} },
};

test.each([
  ["slack:group:G1", 50],
  ["slack:channel:C1", 50],
  ["slack:channel:C1:thread:9", 50],
  ["slack:user:U1", 7],
  ["slack:user:U1:thread:9", 7],
  ["slack:work:user:U1", 7],
  ["slack:user:U2", 100],
  ["slack:user:U3", 100],
  ["slack:user:U9", 100],
  ["matrix:user:@a%3Ab.org", 3],
  ["matrix:user:@c%3Ab.org", undefined],
  ["matrix:group:G1", undefined],
  ["silent:group:G1", undefined],
  ["silent:user:U1", undefined],
  ["Slack:group:G1", undefined],
  ["irc:group:G1", undefined],
  ["constructor:group:G1", undefined],
  ["slack:user:toString", 100],
  ["user:U1", undefined],
  ["main", undefined],
  ["session:slack", undefined],
  ["cron:slack", undefined],
])("[SIZ2] agent:main:%s has the limit %s", (rest, limit) => {
  expect(historyLimitFor(parseKey(`agent:main:${rest}`), channels)).toBe(limit);
});

test("[SIZ2] the session that all share has no limit", () => {
  expect(historyLimitFor(parseKey("global"), channels)).toBeUndefined();
});
