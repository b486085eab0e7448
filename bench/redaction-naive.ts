import { tokenRules } from "../src/access/redaction/token-rules.ts";
import { textOf } from "./redaction.ts";
import type { Acts } from "./side.ts";
import { timedOften } from "./side.ts";

/** One regular expression after another: one for each token rule, plus the usual ones for names and keys. */
const expressions = [
  ...tokenRules.map(({ prefixes, least }) => {
    const begins = prefixes.map((prefix) => prefix.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|");
    return new RegExp(`\\b(?:${begins})[\\w.+/=-]{${least},}`, "g");
  }),
  /\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)\b\s*[=:]\s*["']?[^\s"']{8,}/g,
  /"(?:apiKey|token|secret|password|accessToken|refreshToken)"\s*:\s*"[^"]{8,}"/gi,
  /--(?:api-key|token|secret|password)[\s=]+\S{8,}/gi,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{1,16384}?-----END [A-Z ]*PRIVATE KEY-----/g,
  /\b[a-z]+:\/\/[^\s:@/]{1,100}:[^\s@/]{1,200}@/g,
];

export const acts: Acts = {
  redact: async (job) => {
    const text = textOf(job);
    const ms = await timedOften(3, () => expressions.reduce((all, each) => all.replace(each, "***"), text));
    return { ms };
  },
};
