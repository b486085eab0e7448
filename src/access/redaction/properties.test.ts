import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { secretSamples } from "../../../test/golden/redaction/secrets.ts";
import type { Redactor } from "./redactor.ts";
import { createRedactor, redact } from "./redactor.ts";

const samples = secretSamples(3, 1);
const pieces = [
  ..."= : :// -- ----- … *** \" ' \\ \\n \n ; @ . , password token: API_KEY= sk- sk-ant- ghp_ eyJ Bearer Basic".split(
    " ",
  ),
  ...[
    " ",
    "Cookie: a=",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    '"secret": "',
    "--token ",
  ],
  ...[
    "https://a:b@c",
    "known-value-1",
    "known",
    "😀",
    "\ud83d",
    "\ude00",
    "密码",
    "x".repeat(600),
    "Aa1".repeat(30),
  ],
];
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(...pieces),
      fc.constantFrom(...samples.map((sample) => sample.text)),
      fc.constantFrom(...samples.map((sample) => sample.secret)),
      fc.string({ unit: "binary", maxLength: 12 }),
      fc.stringMatching(/^[A-Za-z0-9_-]{1,40}$/),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(""));

const redactors: Readonly<Record<string, Redactor>> = {
  ours: createRedactor(),
  "with known values": createRedactor({
    secrets: ["known-value-1", "known-value-1-longer-than-that", "abc123"],
  }),
};
const withRules = createRedactor({
  rules: [
    { name: "ticket", pattern: "TICKET-[0-9]+" },
    { name: "x", pattern: "x{5,40}" },
  ],
});

function streamed(redactor: Redactor, whole: string, cuts: readonly number[]): string {
  const stream = redactor.stream();
  const places = [...new Set(cuts.map((cut) => cut % (whole.length + 1)))].toSorted((a, b) => a - b);
  let from = 0;
  let out = "";
  for (const to of [...places, whole.length]) {
    out += stream.push(whole.slice(from, to));
    from = to;
  }
  return out + stream.end();
}

describe.each(Object.entries(redactors))("%s", (_, redactor) => {
  test("[RED4] redacting twice changes nothing", () => {
    fc.assert(
      fc.property(text, (given) => {
        const once = redactor.redact(given).text;
        expect(redactor.redact(once).text).toBe(once);
      }),
    );
  });

  test("[RED5] a stream gives the redacted whole, however it is cut", () => {
    const cuts = fc.array(fc.nat(), { maxLength: 12 });
    fc.assert(
      fc.property(text, cuts, (given, at) => {
        expect(streamed(redactor, given, at)).toBe(redactor.redact(given).text);
      }),
    );
  });

  test("[RED6] no half surrogate pairs come in, and a text grows by a few characters a secret at the most", () => {
    fc.assert(
      fc.property(text, (given) => {
        const { text: after, count } = redactor.redact(given);
        if (given.isWellFormed()) expect(after.isWellFormed()).toBe(true);
        expect(after.length).toBeLessThanOrEqual(given.length + 3 * count);
        if (count === 0) expect(after).toBe(given);
      }),
    );
  });
});

test("[RED5] a stream of single characters gives the redacted whole, for every sample", () => {
  for (const { text: given } of samples) {
    const each = Array.from({ length: given.length }, (_, at) => at);
    expect(streamed(withRules, given, each)).toBe(withRules.redact(given).text);
  }
});

test("[RED5] [RED9] rules of the user's come to the same on a stream", () => {
  const line = fc.array(fc.constantFrom("TICKET-12", "TICKET-", "9", "\n", "x", "x".repeat(4090), "😀"), {
    maxLength: 20,
  });
  fc.assert(
    fc.property(line, fc.array(fc.nat(), { maxLength: 8 }), (parts, at) => {
      const given = parts.join("");
      expect(streamed(withRules, given, at)).toBe(withRules.redact(given).text);
    }),
  );
});

test("[RED5] ordinary text is held back for a few characters, a private key for 16 KB at the most", () => {
  const stream = createRedactor().stream();
  expect(stream.push("The weather is fine. ")).toBe("The weather is fine. ");
  const key = `-----BEGIN PRIVATE KEY-----\n${"Ab1/".repeat(30_000)}`;
  let out = 0;
  for (let at = 0; at < key.length; at += 1000) out += stream.push(key.slice(at, at + 1000)).length;
  expect(out).toBeGreaterThan(0);
});

test("[RED7] a JSON text stays one", () => {
  const value = fc.dictionary(
    fc.constantFrom("password", "token", "apiKey", "Cookie", "Authorization", "a", "url"),
    fc.oneof(text, fc.constantFrom("sk-", 'q"uo\\te'.repeat(5), "\\".repeat(30), `a=${"\n".repeat(20)}`)),
    { maxKeys: 5 },
  );
  fc.assert(
    fc.property(value, (given) => {
      const after = JSON.parse(redact(JSON.stringify(given)).text) as Record<string, unknown>;
      expect(Object.keys(after).length).toBe(Object.keys(given).length);
    }),
  );
});
