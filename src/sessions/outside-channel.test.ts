import { expect, test } from "vitest";
import type { SessionMeta } from "../store/contract.ts";
import { answerTarget, channelOf, outsideChannel } from "./delivery.ts";

const delivery = { channel: "desk", to: "ann", accountId: "work" };
const rows: [string, SessionMeta, object | null, string | null][] = [
  ["agent:main:main", {}, null, null],
  ["agent:main:main", { delivery }, delivery, "desk"],
  ["agent:main:main", { delivery: { channel: "internal" } }, null, null],
  ["agent:main:main", { channel: "cli" }, null, "cli"],
  ["agent:main:user:ann", {}, null, null],
  ["agent:main:slack:user:U1", {}, { channel: "slack", to: "U1" }, "slack"],
  ["agent:main:slack:work:user:U1", {}, { channel: "slack", to: "U1", accountId: "work" }, "slack"],
  ["agent:main:matrix:channel:a%3Ab:thread:7", {}, { channel: "matrix", to: "a:b", threadId: "7" }, "matrix"],
  ["agent:main:desk:user:ann:thread:7", { delivery }, { ...delivery, threadId: "7" }, "desk"],
  [
    "agent:main:desk:group:g:thread:7",
    { delivery: { ...delivery, threadId: "8" } },
    { ...delivery, threadId: "8" },
    "desk",
  ],
  ["agent:main:internal:user:x", {}, null, null],
  ["agent:main:cron:daily", { delivery }, null, null],
  ["agent:main:hook:h", { delivery, channel: "internal" }, null, null],
  ["agent:main:node:n", {}, null, null],
  ["global", {}, null, null],
];

test.each(rows)("%s with %j is announced on %j", (key, meta, target, channel) => {
  expect(outsideChannel({ key, meta })).toEqual(target);
  expect(channelOf({ key, meta })).toBe(channel);
});

const desk = { channel: "desk", to: "ann" };
const shop = { channel: "shop", to: "bob", threadId: "42" };
test.each<[string, Parameters<typeof answerTarget>[0], object | undefined]>([
  [
    "a run from a channel",
    { run: { options: { deliverTo: shop } }, session: placed({ delivery: desk }) },
    shop,
  ],
  ["a run without a channel", { run: { options: {} }, session: placed({ delivery: desk }) }, undefined],
  ["no run", { run: null, session: placed({ delivery: desk }) }, desk],
  [
    "a run that is not a child's",
    { run: null, session: placed({ delivery: desk, spawnedBy: "x" }) },
    undefined,
  ],
])("work started by %s is answered where its answers go", (_, by, target) => {
  expect(answerTarget(by)).toEqual(target);
});

function placed(meta: SessionMeta) {
  return { key: "agent:main:main", meta };
}
