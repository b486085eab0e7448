import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SkeinError } from "../core/errors.ts";
import { formatKey, parseKey } from "../core/keys.ts";
import { userSegment } from "../core/path-segment.ts";
import type { InboundMessage } from "./contract.ts";
import type { DmScope, RoutingSettings } from "./route-inbound.ts";
import { routeInbound } from "./route-inbound.ts";

const settings = (change: Partial<RoutingSettings> = {}): RoutingSettings => ({
  scope: "per-sender",
  dmScope: "per-channel-peer",
  identityLinks: {},
  channels: {},
  agentId: "main",
  ...change,
});
const message = (change: Partial<InboundMessage> = {}): InboundMessage => ({
  channel: "tg",
  messageId: "m1",
  peer: "5",
  text: "hi",
  ...change,
});
const alices = { tg: { agent: null, user: "alice", users: {} } };
const mapped = { tg: { agent: null, user: null, users: { 5: "ann", 6: null } } };
const ofDesk = { tg: { agent: "desk", user: null, users: {} } };
const linked = { ann: ["tg:5", "slack:U1"] };

type Row = [string, Partial<RoutingSettings>, Partial<InboundMessage>, string | null, string];

describe("routing a message", () => {
  test.each<Row>([
    ["an unmapped peer", {}, {}, "tg:5", "agent:main:tg:user:5"],
    ["a channel of one user", { channels: alices }, {}, "alice", "agent:main:tg:user:5"],
    ["a mapped peer", { channels: mapped }, {}, "ann", "agent:main:tg:user:5"],
    ["the unnamed user", { channels: mapped }, { peer: "6" }, null, "agent:main:tg:user:6"],
    ["a peer besides the mapped ones", { channels: mapped }, { peer: "7" }, "tg:7", "agent:main:tg:user:7"],
    ["a linked peer", { identityLinks: linked }, {}, "ann", "agent:main:tg:user:ann"],
    [
      "a linked peer on a channel of another user",
      { identityLinks: linked, channels: alices },
      {},
      "alice",
      "agent:main:tg:user:ann",
    ],
    ["the channel's agent", { channels: ofDesk }, {}, "tg:5", "agent:desk:tg:user:5"],
    [
      "the requested agent on a channel with an agent",
      { channels: ofDesk },
      { agentId: "research" },
      "tg:5",
      "agent:research:tg:user:5",
    ],
    ["the requested agent", {}, { agentId: "Research" }, "tg:5", "agent:research:tg:user:5"],
    [
      "a name like an object's method",
      {},
      { peer: "constructor" },
      "tg:constructor",
      "agent:main:tg:user:constructor",
    ],
    ["a peer with colons", {}, { peer: "@a:b%c" }, "tg:@a%3Ab%25c", "agent:main:tg:user:@a%3Ab%25c"],
  ])("%s", (_, change, more, userId, sessionKey) => {
    expect(routeInbound(message(more), settings(change))).toMatchObject({ userId, sessionKey });
  });

  const forms: Record<DmScope, (own: boolean) => string> = {
    "per-channel-peer": () => "agent:main:tg:user:ann",
    "per-peer": () => "agent:main:user:ann",
    "per-account-channel-peer": () => "agent:main:tg:default:user:ann",
    main: (own) => (own ? "agent:main:main" : "agent:main:tg:user:ann"),
  };
  const scopes = Object.keys(forms) as DmScope[];
  const combinations = scopes.flatMap((dmScope) =>
    [undefined, "a1"].flatMap((accountId) =>
      [undefined, "t1"].flatMap((threadId) =>
        [true, false].map((isOwner) => [dmScope, accountId, threadId, isOwner] as const),
      ),
    ),
  );

  test.each(combinations)(
    "[CHN2] scope %s, account %s, thread %s, owner %s",
    (dmScope, accountId, threadId, own) => {
      const channels = own ? {} : alices;
      const more = {
        ...(accountId === undefined ? {} : { accountId }),
        ...(threadId === undefined ? {} : { threadId }),
      };
      const route = routeInbound(message(more), settings({ dmScope, channels, identityLinks: linked }));
      const base = forms[dmScope](own).replace("default", accountId ?? "default");
      expect(route.sessionKey).toBe(threadId === undefined ? base : `${base}:thread:${threadId}`);
      expect(route.delivery).toEqual({ channel: "tg", to: "5", ...more });
    },
  );

  test("[CHN2] main is for peers that are the user: mapped, or linked under the user's name", () => {
    const key = (change: Partial<RoutingSettings>, peer = "5") =>
      routeInbound(message({ peer }), settings({ dmScope: "main", ...change })).sessionKey;
    expect(key({ channels: mapped })).toBe("agent:main:main");
    expect(key({ channels: mapped }, "6")).toBe("agent:main:main");
    expect(key({ channels: mapped }, "7")).toBe("agent:main:tg:user:7");
    expect(key({ channels: alices })).toBe("agent:main:tg:user:5");
    expect(key({ channels: alices, identityLinks: { alice: ["tg:5"] } })).toBe("agent:main:main");
    expect(key({ channels: alices, identityLinks: { alice: ["slack:5"] } })).toBe("agent:main:tg:user:5");
  });

  test.each(scopes)("a group has one session for all its members under %s", (dmScope) => {
    const of = (peer: string, change: Partial<RoutingSettings>) =>
      routeInbound(message({ peer, group: "G:1", threadId: "t" }), settings({ dmScope, ...change }));
    const sessionKey = "agent:main:tg:group:G%3A1:thread:t";
    for (const peer of ["5", "6", "7"]) {
      expect(of(peer, { channels: mapped, identityLinks: linked })).toEqual({
        userId: "tg:group:G%3A1",
        agentId: "main",
        sessionKey,
        delivery: { channel: "tg", to: "G:1", threadId: "t" },
      });
      expect(of(peer, { channels: alices })).toMatchObject({ userId: "alice", sessionKey });
    }
  });

  test("with one shared session, the global one is used", () => {
    for (const [more, change, userId] of [
      [{ peer: "6" }, {}, null],
      [{ group: "G1" }, { channels: mapped }, null],
      [{}, { channels: alices }, "alice"],
    ] as const) {
      const route = routeInbound(message(more), settings({ ...change, scope: "global", dmScope: "main" }));
      expect(route).toMatchObject({ userId, sessionKey: "global" });
    }
  });

  test.each<[string, Partial<InboundMessage>]>([
    ["no peer", { peer: "" }],
    ["a peer of 10 KB", { peer: "x".repeat(10_240) }],
    ["a peer whose name is too long when encoded", { peer: ":".repeat(200) }],
    ["a control character", { peer: "a\u0000b" }],
    ["half a surrogate pair", { peer: "\ud800" }],
    ["a long thread", { threadId: "t".repeat(201) }],
    ["an empty group", { group: "" }],
    ["a channel with a reserved name", { channel: "cron" }],
  ])("refuses %s with a plain sentence", (_, more) => {
    const act = () => routeInbound(message(more), settings());
    expect(act).toThrow(expect.objectContaining({ code: "invalid_arguments" }));
    expect(act).toThrow(/^(?!.*invalid_key).{20,700}$/);
  });

  test("a peer cannot take the name of a linked person", () => {
    const act = (channels: RoutingSettings["channels"], dmScope: DmScope) => () =>
      routeInbound(message({ peer: "ann" }), settings({ channels, dmScope, identityLinks: linked }));
    expect(act(alices, "per-peer")).toThrow(/same name as an identity link/);
    expect(act({}, "per-peer")()).toMatchObject({ userId: "tg:ann" });
  });

  const id = fc.oneof(
    fc.constantFrom(
      "5",
      "6",
      "ann",
      "tg:5",
      "a:b",
      "group",
      "group:G",
      "main",
      "日本",
      "%3A",
      "a",
      "b",
      "__proto__",
    ),
    fc.string({ unit: "binary", minLength: 1, maxLength: 12 }),
  );
  const speaker = fc.record({ channel: fc.constantFrom("tg", "slack", "tg:a", "a"), peer: id });
  const anySettings = fc.record({
    dmScope: fc.constantFrom(...scopes),
    identityLinks: fc.constantFrom<RoutingSettings["identityLinks"]>({}, linked, { alice: ["tg:6"] }),
    channels: fc.constantFrom<RoutingSettings["channels"]>({}, alices, mapped),
  });
  /** Returns a message's user and key, or `null` if it is rejected with the expected error. */
  const placeOf = (more: Partial<InboundMessage>, change: Partial<RoutingSettings>) => {
    try {
      return routeInbound(message(more), settings(change));
    } catch (error) {
      expect((error as SkeinError).code).toBe("invalid_arguments");
      expect(error).toBeInstanceOf(SkeinError);
      return null;
    }
  };

  test("every key is canonical and every user ID valid, or the message is refused", () => {
    fc.assert(
      fc.property(speaker, anySettings, fc.option(id, { nil: undefined }), (who, change, threadId) => {
        const route = placeOf({ ...who, ...(threadId === undefined ? {} : { threadId }) }, change);
        if (route === null) return;
        expect(formatKey(parseKey(route.sessionKey))).toBe(route.sessionKey);
        if (route.userId !== null) expect(userSegment(route.userId)).not.toBe("");
      }),
    );
  });

  test("two peers share a session only if they are linked or it is main", () => {
    fc.assert(
      fc.property(speaker, speaker, anySettings, (a, b, change) => {
        if (a.peer === b.peer) return;
        const [left, right] = [placeOf(a, change), placeOf(b, change)];
        if (left === null || right === null) return;
        const isShared = left.userId === right.userId && left.sessionKey === right.sessionKey;
        const isMain = left.sessionKey === "agent:main:main";
        const isLinked = Object.values(change.identityLinks).some((peers) =>
          [a, b].every(({ channel, peer }) => peers.includes(`${channel}:${peer}`)),
        );
        expect(isShared && !isMain && !isLinked).toBe(false);
      }),
    );
  });

  test("a peer and a group, or one peer on two channels without a user, share no session", () => {
    fc.assert(
      fc.property(id, id, (peer, group) => {
        const direct = placeOf({ peer }, {});
        const inGroup = placeOf({ peer, group }, {});
        const elsewhere = placeOf({ peer, channel: "slack" }, { dmScope: "per-peer" });
        if (direct !== null && inGroup !== null) expect(direct.userId).not.toBe(inGroup.userId);
        if (direct !== null && elsewhere !== null) expect(direct.userId).not.toBe(elsewhere.userId);
      }),
    );
  });
});
