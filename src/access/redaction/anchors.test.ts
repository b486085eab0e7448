import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { secretSamples } from "../../../test/golden/redaction/secrets.ts";
import { AnchorFinder } from "./anchors.ts";
import { findToken } from "./find-token.ts";
import { redact } from "./redactor.ts";
import { CharacterRuns, isBoundary } from "./secret-matches.ts";
import { tokenRules } from "./token-rules.ts";

const samples = secretSamples(5, 1);
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(...tokenRules.flatMap(({ prefixes }) => prefixes)),
      fc.constantFrom(...samples.map((sample) => sample.text)),
      fc.constantFrom(
        ..."= : :// -- - … \n . 密 password apiKey= --token agent:token:".split(" "),
        " ",
        "\ud83d",
      ),
      fc.stringMatching(/^[A-Za-z0-9_.-]{1,70}$/),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""));

function anchorsOf(given: string): Set<number> {
  const found = new Set<number>();
  const anchors = new AnchorFinder(given);
  for (let at = anchors.next(0, -1); at < given.length; at = anchors.next(at + 1, -1)) found.add(at);
  return found;
}

/** The places where a token is found by trying every character. */
function tokensOf(given: string, isWhole: boolean): number[] {
  return Array.from(given.split("").keys(), (at) => {
    const page = { text: given, isWhole, runs: new CharacterRuns(given), lastEnd: -1 };
    const isOutside = at === 0 || isBoundary(given.charCodeAt(at - 1));
    return isOutside && findToken(page, at) !== null ? at : -1;
  }).filter((at) => at >= 0);
}

describe("anchors", () => {
  test("include every character at which a token starts", () => {
    fc.assert(
      fc.property(text, (given) => {
        const anchors = anchorsOf(given);
        expect(tokensOf(given, true).filter((at) => !anchors.has(at))).toEqual([]);
      }),
    );
  });

  test("include the last characters if more text could complete a token", () => {
    for (const { prefixes } of tokenRules)
      for (const prefix of prefixes)
        for (let length = 1; length <= prefix.length; length++)
          expect(anchorsOf(`x ${prefix.slice(0, length)}`).has(2), prefix.slice(0, length)).toBe(true);
  });

  test("leave out nearly all of an ordinary text", () => {
    expect(
      anchorsOf("The token opens a session; see sketch 4-5 of my map: it explains all.".repeat(100)).size,
    ).toBe(0);
  });
});

test("the result does not depend on where a long text is split into chunks", () => {
  const line = "An ordinary line.\n";
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 2 }), fc.nat({ max: 700 }), (given, chunks, back) => {
      const before = `${line.repeat(2000).slice(0, chunks * 16_384 - back)}\n`;
      const { text: after, count } = redact(given);
      expect(redact(before + given)).toEqual({ text: before + after, count });
    }),
  );
});

test("a name and its value are found wherever a chunk ends between them", () => {
  const given = `OPENAI_API_KEY   = "${"a1B2c3D4e5".repeat(4)}"`;
  for (let back = 0; back < 300; back++) {
    const before = `${" ".repeat(16_384 - back)}\n`;
    expect(redact(before + given).count, `${back} characters before the end of a chunk`).toBe(1);
  }
});
