import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isSignedBy, isTimely, messageIdPattern, mostSkewMs, signatureOf } from "./signature.ts";

/** As `printf '1700000000.m1.{"text":"hi"}' | openssl dgst -sha256 -hmac <secret>` gives them. */
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
  ])("[CHN6] %j is no signature", (signature) => {
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
    [mostSkewMs, true],
    [-mostSkewMs, true],
    [mostSkewMs + 1000, false],
    [-mostSkewMs - 1000, false],
  ])("[CHN6] a clock that is %i ms off", (skew, isFine) => {
    expect(isTimely(String((now + skew) / 1000), now)).toBe(isFine);
  });

  test.each(["", "now", "-1", "1.7e9", "0x6553f100", " 1700000000", String(now), "9".repeat(400)])(
    "[CHN6] %j is no timestamp",
    (timestamp) => {
      expect(isTimely(timestamp, now)).toBe(false);
    },
  );
});
