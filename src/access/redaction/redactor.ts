import { mapStrings } from "./json-strings.ts";
import { keyKind } from "./key-names.ts";
import { KnownValues } from "./known-values.ts";
import { mask } from "./mask.ts";
import { scan } from "./scan.ts";
import { secretIn } from "./secret-values.ts";
import type { RedactionStream } from "./stream.ts";
import { inTurn, knownStream, lineStream, ruleStream, wholeCharacters } from "./stream.ts";
import type { Redacted, UserRule } from "./user-rules.ts";
import { applyUserRules, compileUserRules } from "./user-rules.ts";

export interface RedactorOptions {
  /** Added to ours. */
  readonly rules?: readonly UserRule[];
  /** Values that are secrets wherever they stand: those of the configuration. Of six characters or more. */
  readonly secrets?: Iterable<string>;
}

/** Takes secrets out of texts. Pure, and linear in the length of the text. */
export interface Redactor {
  redact(text: string): Redacted;
  /** All strings of a value, deep; one under a name such as `password` by its name too. */
  redactJson(value: unknown): { readonly value: unknown; readonly count: number };
  stream(): RedactionStream;
}

/**
 * Our rules, the user's and the known values, ready for use. A rule of the user's that cannot be used is refused with
 * `invalid_arguments`.
 */
export function createRedactor({ rules = [], secrets = [] }: RedactorOptions = {}): Redactor {
  const values = new KnownValues(secrets);
  const own = compileUserRules(rules);
  const redact = (text: string): Redacted => {
    const ours = values.isEmpty ? byRules(text) : withKnown(text, values);
    if (own.length === 0) return ours;
    const theirs = applyUserRules(own, ours.text);
    return { text: theirs.text, count: ours.count + theirs.count };
  };
  return {
    redact,
    redactJson: (value) => {
      let count = 0;
      const redacted = mapStrings(value, (text, key) => {
        const named = underName(text, key);
        const all = redact(named ?? text);
        count += all.count + (named === null ? 0 : 1);
        return all.text;
      });
      return { value: redacted, count };
    },
    stream: () => {
      const known = values.isEmpty ? [] : [knownStream(values), ruleStream()];
      const theirs = own.length === 0 ? [] : [lineStream((text) => applyUserRules(own, text).text)];
      return wholeCharacters(inTurn([ruleStream(), ...known, ...theirs]));
    },
  };
}

function byRules(text: string): Redacted {
  const { text: after, count } = scan({ text, from: 0, lastEnd: -1, isWhole: true });
  return { text: count === 0 ? text : after, count };
}

/**
 * Rules first, so that a known value such as "password" does not hide a name from them; and once more where masked values
 * gave a token its end.
 */
function withKnown(text: string, values: KnownValues): Redacted {
  const first = byRules(text);
  const known = values.mask(first.text, true);
  if (known.count === 0) return first;
  const second = byRules(known.text);
  return { text: second.text, count: first.count + known.count + second.count };
}

/** The text with what its name says is a secret masked; `null`: its name says nothing of the kind. */
function underName(text: string, key: string | null): string | null {
  const kind = key === null ? null : keyKind(key);
  const part = kind === null ? null : secretIn(text, kind, "quoted");
  if (part === null) return null;
  return `${text.slice(0, part.from)}${mask(text.slice(part.from, part.to))}${text.slice(part.to)}`;
}

/** With our rules, and perhaps some of the user's. To redact more than once, make a redactor. */
export function redact(text: string, rules: readonly UserRule[] = []): Redacted {
  return (rules.length === 0 ? ours : createRedactor({ rules })).redact(text);
}

const ours = createRedactor();
