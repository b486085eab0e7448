import { expect, test } from "vitest";
import { cpuMs } from "../../../test/support/cpu-time.ts";
import { createRedactor } from "./redactor.ts";

const pem = "-----BEGIN RSA PRIVATE KEY-----";
const redactor = createRedactor({ secrets: ["aaaaaaaaaaaaaaaaab"] });

/** What tempts a rule to look at everything for each place. */
const hostile: Readonly<Record<string, string>> = {
  "prefixes in a row": "sk-",
  "prefixes of JWTs": "eyJ.",
  "one long word": "a",
  "names without values": "password=",
  "names with refused values": "token=token:",
  "quotes that never end": `password="'\``,
  "keys that never end": pem,
  "addresses without a host": "a://b:",
  "addresses in a row": "a://b:c@",
  flags: "--token ",
  hyphens: "-",
  colons: "1234567890:",
  equals: "=",
  backslashes: 'password=\\"\\',
  spaces: "password          ",
  dots: "M.",
  bearer: "Bearer ",
  cookies: "Cookie: a=",
  webhooks: "hooks.slack.com/services/",
  emoji: "😀",
};

test.each(Object.entries(hostile))("[RED11] the time grows linearly: %s", (_, unit) => {
  const make = (length: number) => Buffer.from(unit.repeat(Math.ceil(length / unit.length))).toString();
  const timeOf = (text: string) => cpuMs(() => redactor.redact(text));
  const [few, many] = [timeOf(make(50_000)), timeOf(make(400_000))];
  // Eight times as much takes sixty-four times as long where a rule is quadratic.
  expect(many / few).toBeLessThan(32);
});
