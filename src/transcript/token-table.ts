import { classSpan, firstScript, scriptNames } from "./character-classes.ts";
import type { Vocabulary } from "./token-rates.ts";
import { tokenRates } from "./token-rates.ts";
import type { State } from "./token-steps.ts";
import { beginsWord, firstState, isLateLetter, step } from "./token-steps.ts";

/** Every step there is: at `state + class`, what it adds, and the state behind it. The first state is 0. */
export interface TokenTable {
  readonly tokens: Float64Array;
  readonly next: Uint16Array;
  /** Whether it begins a word, and whether it is a late letter of one. */
  readonly words: Uint8Array;
  readonly lateLetters: Uint8Array;
}

const tables = new Map<Vocabulary, TokenTable>();

/** Made when first asked for. */
export function tokenTable(vocabulary: Vocabulary): TokenTable {
  const known = tables.get(vocabulary);
  if (known !== undefined) return known;
  const table = makeTable(vocabulary);
  tables.set(vocabulary, table);
  return table;
}

function makeTable(vocabulary: Vocabulary): TokenTable {
  const states: State[] = [firstState];
  const places = new Map([[nameOf(firstState), 0]]);
  const steps: { place: number; tokens: number; next: number; state: State }[] = [];
  // States that are found on the way are added behind.
  for (const [from, state] of states.entries()) {
    for (let kind = 0; kind < firstScript + scriptNames.length; kind++) {
      const reached = step(state, kind, tokenRates[vocabulary]);
      const name = nameOf(reached.state);
      const found = places.get(name) ?? states.push(reached.state) - 1;
      places.set(name, found);
      steps.push({ place: from * classSpan + kind, next: found * classSpan, ...reached });
    }
  }
  const size = states.length * classSpan;
  const [tokens, next] = [new Float64Array(size), new Uint16Array(size)];
  const [words, lateLetters] = [new Uint8Array(size), new Uint8Array(size)];
  for (const each of steps) {
    tokens[each.place] = each.tokens;
    next[each.place] = each.next;
    words[each.place] = Number(beginsWord(each.state));
    lateLetters[each.place] = Number(isLateLetter(each.state));
  }
  return { tokens, next, words, lateLetters };
}

function nameOf({ kind, length, shorts, led }: State): number {
  return ((kind * 32 + length) * 8 + shorts) * 2 + Number(led);
}
