import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { secretSamples } from "../../../test/golden/redaction/secrets.ts";
import type { Redactor } from "./redactor.ts";
import { createRedactor, redact } from "./redactor.ts";

/** Built here so that no scanner mistakes this file for a leak. */
const long = "a1B2c3D4e5".repeat(4);

describe("masks", () => {
  test.each([
    [`sk-ant-${long}`, "sk-ant…D4e5"],
    ["password=hunter22", "password=***"],
    [`{"apiKey": "${long}"}`, '{"apiKey": "a1B2c3…D4e5"}'],
    [`--api-key ${long} --yes`, "--api-key a1B2c3…D4e5 --yes"],
    [`Authorization: Bearer ${long}`, "Authorization: Bearer a1B2c3…D4e5"],
    ["postgres://ann:s3cret@host/db", "postgres://ann:***@host/db"],
    [`https://${long}:x-oauth-basic@github.com/a`, "https://a1B2c3…D4e5:x-oauth-basic@github.com/a"],
    [`Cookie: sid=${long}; theme=dark`, "Cookie: sid=a1B2c3…dark"],
    [`set-cookie: sid=${long}; Path=/`, "set-cookie: sid=a1B2c3…D4e5; Path=/"],
    [
      `-----BEGIN PRIVATE KEY-----\n${long}\n-----END PRIVATE KEY-----`,
      "-----BEGIN PRIVATE KEY-----\n…redacted…\n-----END PRIVATE KEY-----",
    ],
  ])("%s", (text, masked) => {
    expect(redact(text)).toEqual({ text: masked, count: 1 });
  });

  test.each([
    "key: value",
    "token: 5",
    "password: required",
    "the secret of success",
    "session_key: agent:main:subagent:123e4567-e89b-12d3-a456-426614174000",
    "agent:token:telegram:direct:123456789",
    "const token = await getToken(password);",
    `password=$DB_PASSWORD token=\${TOKEN}`,
  ])("[RED2] leaves %s unchanged", (text) => {
    expect(redact(text)).toEqual({ text, count: 0 });
  });
});

describe("known values", () => {
  const redactor = createRedactor({
    secrets: ["swordfish", "swordfish-and-more", "short", 'a "quoted" one', "password"],
  });

  test("are masked wherever they occur, the longest first", () => {
    expect(redactor.redact("say swordfish!").text).toBe("say ***!");
    expect(redactor.redact("swordfish-and-more").text).toBe("swordf…more");
    expect(redactor.redact("xswordfishx").text).toBe("x***x");
  });

  test("are also masked in their JSON and URL encodings", () => {
    expect(redactor.redact(JSON.stringify({ a: 'a "quoted" one' })).text).toBe('{"a":"***"}');
    expect(redactor.redact("?q=a%20%22quoted%22%20one").text).toBe("?q=a%20%2…0one");
  });

  test("shorter than six characters are not masked", () => {
    expect(redactor.redact("short and sweet").count).toBe(0);
  });

  test("do not hide a name from the rules", () => {
    expect(redactor.redact("password=hunter22").text).toBe("***=***");
  });
});

describe("JSON values", () => {
  test("redacts every string by its name and by its shape, including property names", () => {
    const value = {
      password: "correct-horse",
      nested: [{ Authorization: `Bearer ${long}` }, `see sk-ant-${long}`],
      [`sk-ant-${long}`]: 1,
      token: "none",
      count: 5,
      nothing: null,
    };
    expect(createRedactor().redactJson(value)).toEqual({
      value: {
        password: "***",
        nested: [{ Authorization: "Bearer a1B2c3…D4e5" }, "see sk-ant…D4e5"],
        "sk-ant…D4e5": 1,
        token: "none",
        count: 5,
        nothing: null,
      },
      count: 4,
    });
  });

  test("keeps both values when two masked names collide, and treats __proto__ as an ordinary name", () => {
    const value = JSON.parse(
      `{"sk-ant-${long}":1,"sk-ant-${long.slice(10)}9${long}":2,"__proto__":{"password":"hunter22"}}`,
    );
    const { value: after } = createRedactor().redactJson(value);
    expect(JSON.stringify(after)).toBe(
      '{"sk-ant…D4e5":1,"sk-ant…D4e5 (2)":2,"__proto__":{"password":"***"}}',
    );
  });

  test("redacts at any depth", () => {
    let value: unknown = "password=hunter22";
    for (let depth = 0; depth < 50_000; depth++) value = [value];
    expect(createRedactor().redactJson(value).count).toBe(1);
  });
});

describe("custom rules", () => {
  test("are added to the built-in rules", () => {
    const redactor = createRedactor({
      rules: [
        { name: "ticket", pattern: "TICKET-[0-9]+" },
        { name: "customer", pattern: "customer [0-9]{18,}", keep: "nothing" },
      ],
    });
    const { text, count } = redactor.redact(`TICKET-12, customer 1234567890123456789, sk-ant-${long}`);
    expect({ text, count }).toEqual({ text: "***, ***, sk-ant…D4e5", count: 3 });
  });

  test.each([
    ["(", "Invalid regular expression"],
    ["a*", "matches the empty string"],
    ["\\b", "matches the empty string"],
    ["(a+)+b", "repeats a group"],
    ["(?:a|ab)*c", "repeats a group"],
    ["((a{2,})b)+", "repeats a group"],
    ["(a)\\1", "backreference"],
    ["a".repeat(501), "longer than 500"],
  ])("rejects %s", (pattern, problem) => {
    const make = () => createRedactor({ rules: [{ name: "mine", pattern }] });
    expect(make).toThrow(expect.objectContaining({ code: "invalid_arguments" }));
    expect(make).toThrow(problem);
  });

  test("see one line at a time, up to 4,096 characters", () => {
    const redactor = createRedactor({ rules: [{ name: "any", pattern: "b[^c]+c" }] });
    expect(redactor.redact("b1\n2c").count).toBe(0);
    expect(redactor.redact(`${"a".repeat(4094)}b12c`).count).toBe(0);
    expect(redactor.redact(`${"a".repeat(4096)}b12c`).text.endsWith("a***")).toBe(true);
  });
});

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
  test("redacting twice changes nothing", () => {
    fc.assert(
      fc.property(text, (given) => {
        const once = redactor.redact(given).text;
        expect(redactor.redact(once).text).toBe(once);
      }),
    );
  });

  test("a stream equals the redacted text, however it is split", () => {
    const cuts = fc.array(fc.nat(), { maxLength: 12 });
    fc.assert(
      fc.property(text, cuts, (given, at) => {
        expect(streamed(redactor, given, at)).toBe(redactor.redact(given).text);
      }),
    );
  });

  test("adds no half surrogate pairs, and at most a few characters per secret", () => {
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

test("a stream of single characters equals the redacted text, for every sample", () => {
  for (const { text: given } of samples) {
    const each = Array.from({ length: given.length }, (_, at) => at);
    expect(streamed(withRules, given, each)).toBe(withRules.redact(given).text);
  }
});

test("custom rules give the same result on a stream", () => {
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

test("holds back ordinary text for a few characters, and a private key for at most 16 KB", () => {
  const stream = createRedactor().stream();
  expect(stream.push("The weather is fine. ")).toBe("The weather is fine. ");
  const key = `-----BEGIN PRIVATE KEY-----\n${"Ab1/".repeat(30_000)}`;
  let out = 0;
  for (let at = 0; at < key.length; at += 1000) out += stream.push(key.slice(at, at + 1000)).length;
  expect(out).toBeGreaterThan(0);
});

test("redacted JSON is still valid JSON", () => {
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
