import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { redact } from "../../../src/access/redaction/redactor.ts";
import { secretlintFinds } from "./oracle.ts";
import { ordinaryLines } from "./ordinary.ts";
import { isLeaked, secretSamples, shapes } from "./secrets.ts";

const samples = secretSamples(20261115, 10);
const lines = ordinaryLines(20261115, 5000);
const leaked = samples.filter((sample) => isLeaked(redact(sample.text).text, sample));
const hits = (1 - leaked.length / samples.length) * 100;

describe("the corpus", () => {
  test("[RED1] at least 99.5 % of the secrets are masked, and of each vendor most", () => {
    expect(leaked.slice(0, 5).map(({ vendor, carrier }) => `${vendor} in ${carrier}`)).toEqual([]);
    expect(hits).toBeGreaterThanOrEqual(99.5);
    expect(Object.keys(shapes).length).toBeGreaterThan(40);
  });

  test("[RED2] no ordinary line is changed: prose, code, logs, session keys, hashes, uuids, images", () => {
    expect(lines.filter((line) => redact(line).text !== line)).toEqual([]);
    const all = lines.join("\n");
    expect(redact(all)).toEqual({ text: all, count: 0 });
  });

  test("[RED1] what secretlint finds is masked", async () => {
    const few = secretSamples(7, 1);
    let found = 0;
    const missed: string[] = [];
    for (const { text, vendor, carrier } of few) {
      const finds = await secretlintFinds(text);
      const after = redact(text).text;
      const still = finds.filter((each) => after.includes(each) && !each.startsWith("-----BEGIN"));
      if (still.length > 0) missed.push(`${vendor} in ${carrier}`);
      found += finds.length;
    }
    expect(missed).toEqual([]);
    // The oracle is awake.
    expect(found).toBeGreaterThan(few.length / 3);
  });

  test("[RED1] [RED2] the page says what was measured", () => {
    const page = readFileSync(fileURLToPath(new URL("../../../docs/redaction.md", import.meta.url)), "utf8");
    const figures =
      `| secrets | ${samples.length.toLocaleString("en")} | ${hits.toFixed(1)} % masked |\n` +
      `| ordinary lines | ${lines.length.toLocaleString("en")} | 0 changed |`;
    expect(page).toContain(figures);
  });
});
