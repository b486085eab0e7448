import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { SkeinError } from "../core/errors.ts";
import { createWebhook } from "./webhook.ts";
import type { AcceptInbound } from "./webhook-inbound.ts";
import {
  inboundKey,
  isSignedBy,
  isTimely,
  maxBodyBytes,
  maxSkewMs,
  messageIdPattern,
  signatureOf,
} from "./webhook-inbound.ts";

const secret = "s3cret";
const now = 1_700_000_000_000;
const accepted: AcceptInbound = async () => ({ runId: "r1", sessionKey: "agent:main:main", isNew: true });

function setUp(accept: AcceptInbound = accepted) {
  const taken = vi.fn(accept);
  const report = vi.fn();
  const { handler } = createWebhook({
    id: "desk",
    secret,
    url: null,
    accept: taken,
    clock: { now: () => now },
    report,
  });
  const answer = async (request: Request) => {
    const response = await handler(request);
    const body = (await response.json()) as Answer;
    return { status: response.status, body };
  };
  return { taken, report, answer, handler };
}

interface Answer {
  readonly code: string;
  readonly error: string;
  readonly problems: readonly { readonly path: string }[];
}

interface Given {
  readonly body?: unknown;
  /** `null` removes the header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly method?: string;
  readonly skew?: number;
}

/** Creates a request that is valid except for the given changes. */
function signed({
  body = { text: "hi", peer: "ann" },
  headers = {},
  method = "POST",
  skew = 0,
}: Given = {}): Request {
  const text = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  const timestamp = String((now + skew) / 1000);
  const id = headers["x-skein-message-id"] === undefined ? "m1" : headers["x-skein-message-id"];
  const all = {
    "content-type": "application/json",
    "x-skein-timestamp": timestamp,
    "x-skein-message-id": "m1",
    "x-skein-signature": signatureOf(secret, { timestamp, messageId: id ?? "", body: text }),
    ...headers,
  };
  const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== null);
  const content = method === "GET" ? {} : { body: text as string };
  return new Request("http://localhost/channels/desk/inbound", { method, headers: given, ...content });
}

describe("inbound webhook messages", () => {
  test("[CHN7] a signed message is accepted with all its fields", async () => {
    const { taken, answer } = setUp();
    const body = {
      text: "Guten Tag, 日本",
      peer: "ann",
      group: "G1",
      threadId: "t",
      accountId: "a",
      agentId: "research",
      images: [{ data: "aGk=", mimeType: "image/png" }],
    };
    expect(await answer(signed({ body }))).toEqual({
      status: 202,
      body: { runId: "r1", sessionKey: "agent:main:main", status: "accepted" },
    });
    expect(taken.mock.calls).toEqual([[{ ...body, channel: "desk", messageId: "m1" }, "inbound:desk:a:m1"]]);
  });

  test("[CHN7] the same message has the same key, and a known one gets 200", async () => {
    const keys = new Set<string>();
    const { taken, answer } = setUp(async (_, key) => {
      const isNew = !keys.has(key);
      keys.add(key);
      return { runId: "r1", sessionKey: "agent:main:main", isNew };
    });
    const all = [await answer(signed()), await answer(signed()), await answer(signed({ skew: 60_000 }))];
    expect(all.map(({ status }) => status)).toEqual([202, 200, 200]);
    expect(all[1]?.body).toEqual({ runId: "r1", sessionKey: "agent:main:main", status: "known" });
    expect(new Set(taken.mock.calls.map(([, key]) => key)).size).toBe(1);
  });

  test("[CHN7] the ID may be in the body or the header, which takes precedence; one is required", async () => {
    const { taken, answer } = setUp();
    const body = { text: "hi", peer: "ann", messageId: "in-body" };
    await answer(signed({ body, headers: { "x-skein-message-id": null } }));
    await answer(signed({ body }));
    expect(taken.mock.calls.map(([{ messageId }]) => messageId)).toEqual(["in-body", "m1"]);
    const without = await answer(signed({ headers: { "x-skein-message-id": null } }));
    expect(without).toMatchObject({ status: 400, body: { problems: [{ path: "messageId" }] } });
  });

  test("[CHN7] different messages have different keys, whatever their IDs contain", () => {
    const message = { channel: "a", messageId: "b:c", peer: "p", text: "x" };
    const keys = [
      message,
      { ...message, channel: "a:", messageId: "c" },
      { ...message, accountId: "b", messageId: "c" },
    ];
    expect(new Set(keys.map(inboundKey)).size).toBe(3);
  });

  test.each<[string, Given]>([
    ["no signature", { headers: { "x-skein-signature": null } }],
    ["no timestamp", { headers: { "x-skein-timestamp": null } }],
    ["a signature of another message", { headers: { "x-skein-signature": `sha256=${"0".repeat(64)}` } }],
    ["a malformed signature", { headers: { "x-skein-signature": "hunter2" } }],
    ["a clock too far behind", { skew: -301_000 }],
    ["a clock too far ahead", { skew: 301_000 }],
    ["a timestamp in words", { headers: { "x-skein-timestamp": "yesterday" } }],
  ])("[CHN6] %s is refused with 401", async (_, given) => {
    const { taken, answer } = setUp();
    const { status, body } = await answer(signed(given));
    expect([status, body.code]).toEqual([401, "unauthorized"]);
    expect(body.error).not.toContain(secret);
    expect(taken).not.toHaveBeenCalled();
  });

  test("[CHN6] a message with another ID, time or body than the signed one is refused", async () => {
    const { answer } = setUp();
    const request = signed();
    const headers = Object.fromEntries(request.headers);
    const body = await request.text();
    for (const [change, text] of [
      [{ "x-skein-message-id": "m2" }, body],
      [{ "x-skein-timestamp": String(now / 1000 + 1) }, body],
      [{}, `${body} `],
    ] as const) {
      const forged = new Request(request.url, {
        method: "POST",
        headers: { ...headers, ...change },
        body: text,
      });
      expect(await answer(forged)).toMatchObject({ status: 401 });
    }
  });

  test("[CHN6] clocks may be five minutes apart", async () => {
    const { answer } = setUp();
    for (const skew of [-300_000, 300_000]) expect((await answer(signed({ skew }))).status).toBe(202);
  });

  test.each<[string, unknown, string[]]>([
    ["no JSON", "{", [""]],
    ["a list", "[]", [""]],
    ["null", "null", [""]],
    ["nothing", "", [""]],
    ["no UTF-8", new Uint8Array([0x22, 0xff, 0x22]), [""]],
    ["a thousand brackets", "[".repeat(100_000), [""]],
    ["no fields", {}, ["text", "peer"]],
    ["an empty text", { text: "", peer: "p" }, ["text"]],
    ["an empty text and no images", { text: "", peer: "p", images: [] }, ["text"]],
    [
      "numbers instead of strings",
      { text: 1, peer: 2, group: 3, agentId: "" },
      ["text", "peer", "group", "agentId"],
    ],
    ["null for absent fields", { text: "x", peer: "p", threadId: null }, ["threadId"]],
    ["an empty name", { text: "x", peer: "p", peerName: "" }, ["peerName"]],
    ["unknown fields", { text: "x", peer: "p", thread_id: "t", channel: "c" }, ["thread_id", "channel"]],
    ["a __proto__ field", '{"text":"x","peer":"p","__proto__":{"text":"y"}}', ["__proto__"]],
    ["images that are not a list", { text: "x", peer: "p", images: "aGk=" }, ["images"]],
    [
      "wrong images",
      {
        text: "x",
        peer: "p",
        images: [1, { data: "a", mimeType: "text/html" }, { data: "aGk=", mimeType: "image/png", url: "x" }],
      },
      ["images[0]", "images[1].data", "images[1].mimeType", "images[2].url"],
    ],
  ])("%s is refused with 400 and every wrong field", async (_, body, paths) => {
    const { taken, answer } = setUp();
    const answered = await answer(signed({ body }));
    expect([answered.status, answered.body.code]).toEqual([400, "invalid_arguments"]);
    expect(answered.body.problems.map(({ path }) => path)).toEqual(paths);
    expect(taken).not.toHaveBeenCalled();
  });

  test("images need no text", async () => {
    const { taken, answer } = setUp();
    const images = [{ data: "aGk=", mimeType: "image/png" }];
    expect((await answer(signed({ body: { peer: "p", images } }))).status).toBe(202);
    expect(taken.mock.calls[0]?.[0]).toMatchObject({ text: "", images });
  });

  test("refuses other methods, other content types and malformed IDs", async () => {
    const { answer, handler } = setUp();
    expect((await handler(signed({ method: "GET" }))).headers.get("allow")).toBe("POST");
    expect((await answer(signed({ method: "PUT" }))).status).toBe(405);
    expect((await answer(signed({ headers: { "content-type": "text/plain" } }))).status).toBe(415);
    expect(
      (await answer(signed({ headers: { "content-type": "application/json;charset=utf-8" } }))).status,
    ).toBe(202);
    for (const id of ['a"b', "{", "a b", "x".repeat(201)]) {
      expect((await answer(signed({ headers: { "x-skein-message-id": id } }))).status).toBe(400);
    }
  });

  test("refuses a body over 25 MiB with 413, even without a declared size", async () => {
    const { taken, answer } = setUp();
    const declared = signed({ headers: { "content-length": String(maxBodyBytes + 1) } });
    expect(await answer(declared)).toMatchObject({ status: 413, body: { code: "body_too_large" } });
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += 1 << 20;
        controller.enqueue(new Uint8Array(1 << 20));
      },
    });
    const request = new Request(declared.url, {
      method: "POST",
      headers: signed().headers,
      body: endless,
      duplex: "half",
    } as RequestInit);
    expect((await answer(request)).status).toBe(413);
    expect(sent).toBeLessThan(maxBodyBytes + (4 << 20));
    expect(taken).not.toHaveBeenCalled();
  });

  const told = { problem: "No", advice: "Ask" };
  test.each<[unknown, number, string, RegExp, number]>([
    [new SkeinError("forbidden", told), 403, "forbidden", /^No\. Ask\.$/, 0],
    [new SkeinError("invalid_agent_id", { agentId: "x y", pattern: "z" }), 400, "invalid_agent_id", /x y/, 0],
    [
      new SkeinError("locked", { file: "/srv/secret", holder: "9" }),
      423,
      "locked",
      /^The message was not accepted/,
      0,
    ],
    [
      new SkeinError("internal", { problem: "/srv/secret" }),
      500,
      "internal",
      /^The message was not accepted/,
      1,
    ],
    [new Error("/srv/secret"), 500, "internal", /^The message was not accepted/, 1],
    ["/srv/secret", 500, "internal", /^The message was not accepted/, 1],
  ])("an error thrown by accept (%s) is %i %s", async (thrown, status, code, text, reports) => {
    const { answer, report } = setUp(async () => {
      throw thrown;
    });
    const answered = await answer(signed());
    expect(answered).toMatchObject({ status, body: { code, error: expect.stringMatching(text) } });
    expect(JSON.stringify(answered)).not.toContain("/srv/secret");
    expect(report).toHaveBeenCalledTimes(reports);
  });
});

/** Computed with `printf '1700000000.m1.{"text":"hi"}' | openssl dgst -sha256 -hmac <secret>`. */
const vectors = [
  [
    "s3cret",
    "1700000000",
    "m1",
    '{"text":"hi"}',
    "aa047da5f31fbb21af1326aaad8c0ccceec474d11e6d3e92e1fe070eb6daaa60",
  ],
  ["schlüssel", "1700000000", "", "日本", "64a98c1e7b609b72c9cb7357377bc1fdfb28f3ce6928d04e3806ba88d4e3b559"],
] as const;

describe("signatures", () => {
  test.each(vectors)(
    "[CHN6] secret %s, timestamp %s, id %j, body %s",
    (secret, timestamp, messageId, body, hex) => {
      const signed = { timestamp, messageId, body };
      expect(signatureOf(secret, signed)).toBe(`sha256=${hex}`);
      expect(isSignedBy(secret, { ...signed, body: Buffer.from(body) }, `sha256=${hex.toUpperCase()}`)).toBe(
        true,
      );
    },
  );

  const signed = { timestamp: "1700000000", messageId: "m1", body: "{}" };
  const right = signatureOf("s", signed);

  test.each([
    "",
    "sha256=",
    right.slice(7),
    `sha1=${right.slice(7)}`,
    `${right}00`,
    ` ${right}`,
    right.slice(0, -1),
  ])("[CHN6] %j is not a signature", (signature) => {
    expect(isSignedBy("s", signed, signature)).toBe(false);
  });

  test("[CHN6] every part counts, and no other message has the same signature", () => {
    expect(isSignedBy("s", signed, right)).toBe(true);
    expect(isSignedBy("t", signed, right)).toBe(false);
    const message = fc.record({
      timestamp: fc.stringMatching(/^\d{1,3}$/),
      messageId: fc.oneof(fc.constant(""), fc.stringMatching(messageIdPattern), fc.constantFrom("a.b", "a")),
      body: fc.constantFrom('{"a":1}', '{"a":"b.{}"}', "{}"),
    });
    fc.assert(
      fc.property(message, message, (a, b) => {
        expect(isSignedBy("s", a, signatureOf("s", b))).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
  });

  const now = 1_700_000_000_000;
  test.each([
    [0, true],
    [maxSkewMs, true],
    [-maxSkewMs, true],
    [maxSkewMs + 1000, false],
    [-maxSkewMs - 1000, false],
  ])("[CHN6] with a clock that is %i ms off", (skew, isFine) => {
    expect(isTimely(String((now + skew) / 1000), now)).toBe(isFine);
  });

  test.each(["", "now", "-1", "1.7e9", "0x6553f100", " 1700000000", String(now), "9".repeat(400)])(
    "[CHN6] %j is not a timestamp",
    (timestamp) => {
      expect(isTimely(timestamp, now)).toBe(false);
    },
  );
});
