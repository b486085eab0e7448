import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Skein } from "../../../src/index.ts";
import { createSkein, defineAgent } from "../../../src/index.ts";
import { secretlintFinds } from "./oracle.ts";
import { ordinaryLines } from "./ordinary.ts";
import type { Sample } from "./secrets.ts";
import { isLeaked, secretSamples, shapes } from "./secrets.ts";

const samples = secretSamples(20261115, 10);
const lines = ordinaryLines(20261115, 5000);
let skein: Skein;
let sessionCount = 0;
let leaked: readonly Sample[] = [];

beforeAll(async () => {
  skein = await createSkein({
    memory: true,
    config: { redaction: { onWrite: true } },
    env: {},
    agents: [defineAgent({ id: "main", model: "rehearsal/basic" })],
  });
  const masked = await redactAll(samples.map(({ text }) => text));
  leaked = samples.filter((sample, index) => isLeaked(masked[index] ?? sample.text, sample));
});
afterAll(() => skein.close());

/** Each text as a session stores it; many are stored as the parts of one message. */
async function redactAll(texts: readonly string[]): Promise<string[]> {
  const stored: string[] = [];
  for (let from = 0; from < texts.length; from += 200) {
    const content = texts.slice(from, from + 200).map((text) => ({ type: "text" as const, text }));
    const { entries } = await skein
      .session({ sessionId: `s${sessionCount++}` })
      .append([{ role: "user", content }]);
    for (const entry of entries) {
      if (entry.type !== "message" || entry.message.role !== "user") continue;
      const parts = entry.message.content as readonly { readonly text: string }[];
      stored.push(...parts.map(({ text }) => text));
    }
  }
  return stored;
}

const hits = () => (1 - leaked.length / samples.length) * 100;

describe("the redaction corpus", () => {
  test("[RED1] at least 99.5 % of the secrets are masked, and most of each vendor", () => {
    expect(leaked.slice(0, 5).map(({ vendor, carrier }) => `${vendor} in ${carrier}`)).toEqual([]);
    expect(hits()).toBeGreaterThanOrEqual(99.5);
    expect(Object.keys(shapes).length).toBeGreaterThan(40);
  });

  test("[RED2] no ordinary line is changed: prose, code, logs, session keys, hashes, uuids, images", async () => {
    expect(await redactAll(lines)).toEqual(lines);
    const pages = Array.from({ length: 10 }, (_, page) =>
      lines.slice(page * 500, page * 500 + 500).join("\n"),
    );
    expect(await redactAll(pages)).toEqual(pages);
  });

  test("[RED1] everything that secretlint finds is masked", async () => {
    const few = secretSamples(7, 1);
    const masked = await redactAll(few.map(({ text }) => text));
    let found = 0;
    const missed: string[] = [];
    for (const [index, { text, vendor, carrier }] of few.entries()) {
      const finds = await secretlintFinds(text);
      const after = masked[index] ?? text;
      const still = finds.filter((each) => after.includes(each) && !each.startsWith("-----BEGIN"));
      if (still.length > 0) missed.push(`${vendor} in ${carrier}`);
      found += finds.length;
    }
    expect(missed).toEqual([]);
    // Checks that the oracle works.
    expect(found).toBeGreaterThan(few.length / 3);
  });

  test("[RED1] [RED2] the documentation states the measured values", () => {
    const page = readFileSync(fileURLToPath(new URL("../../../docs/redaction.md", import.meta.url)), "utf8");
    const figures =
      `| secrets | ${samples.length.toLocaleString("en")} | ${hits().toFixed(1)}% masked |\n` +
      `| ordinary lines | ${lines.length.toLocaleString("en")} | 0 changed |`;
    expect(page).toContain(figures);
  });
});

/** Built here, so that no scanner mistakes this file for a leak. */
const long = "a1B2c3D4e5".repeat(4);

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
])("[RED8] %s shows at most its ends", async (text, masked) => {
  expect(await redactAll([text])).toEqual([masked]);
});
