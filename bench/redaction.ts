import { redact } from "../src/access/redaction/redactor.ts";
import { ordinaryLines } from "../test/golden/redaction/ordinary.ts";
import { secretSamples } from "../test/golden/redaction/secrets.ts";
import type { Acts, Job } from "./side.ts";
import { timedOften } from "./side.ts";

/** The time it takes to redact a text. */
export const acts: Acts = {
  redact: async (job) => {
    const text = textOf(job);
    return { ms: await timedOften(5, () => redact(text)) };
  },
};

/**
 * Text of this many bytes: either prose, code and logs with a secret every fifty lines, or text that triggers rules
 * everywhere.
 */
export function textOf({ count = 1, kind }: Job): string {
  const once = kind === "hostile" ? 'sk-password="token=a://b:eyJ.--token ' : mixed();
  const text = once.repeat(Math.ceil(count / Buffer.byteLength(once)));
  return Buffer.from(text).subarray(0, count).toString();
}

function mixed(): string {
  const secrets = secretSamples(1, 1);
  return ordinaryLines(1, 5000)
    .map((line, index) => (index % 50 === 0 ? `${line}\n${secrets[index % secrets.length]?.text}` : line))
    .join("\n");
}
